// Routes of each framework, on small projects written here.

import assert from "node:assert/strict";
import { test } from "node:test";
import { collect, routeLines, scratch, write } from "./kit.mjs";

const pkg = (...deps) => JSON.stringify({ name: "fixture", dependencies: Object.fromEntries(deps.map((d) => [d, "1"])) });

const CASES = {
  "go net/http": [{
    "go.mod": "module example.test/shop\n\ngo 1.22\n",
    "main.go": `package main
import "net/http"
// http.HandleFunc("/commented", nil)
const note = "http.HandleFunc(\\"/in-a-string\\", h)"
func main() {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /items/{id}", show)
	mux.HandleFunc("POST /items", create)
	mux.Handle("/files/{path...}", files())
	api := http.NewServeMux()
	api.HandleFunc("GET /ping", ping)
	mux.Handle("/v1/", http.StripPrefix("/v1", api))
	http.HandleFunc("/health", health)
}
`,
    "main_test.go": 'package main\nimport "net/http"\nfunc x() { http.HandleFunc("/only-in-tests", nil) }\n',
  }, ["ANY /files/*path", "ANY /health", "GET /items/:id", "GET /v1/ping", "POST /items"]],

  "chi with Route, Mount, Group and another file": [{
    "go.mod": "module example.test/shop\nrequire github.com/go-chi/chi/v5 v5.0.0\n",
    "main.go": `package main
import "github.com/go-chi/chi/v5"
func main() {
	r := chi.NewRouter()
	r.Get("/", home)
	r.Route("/articles", func(r chi.Router) {
		r.With(paginate).Get("/", list)
		r.Post("/", create)
		r.Route("/{articleID:[0-9]+}", func(r chi.Router) {
			r.Use(ctx)
			r.Get("/", get)
			r.Delete("/", del)
		})
	})
	r.Group(func(r chi.Router) { r.Put("/grouped", put) })
	r.Mount("/admin", adminRouter())
	registerUsers(r)
	r.MethodFunc("PATCH", "/thing", thing)
	value := cache.Get("/not-a-route")
}
func adminRouter() http.Handler {
	r := chi.NewRouter()
	r.Get("/stats", stats)
	return r
}
`,
    "users.go": `package main
import "github.com/go-chi/chi/v5"
func registerUsers(r chi.Router) { r.Get("/users/{id}", user) }
`,
  }, ["DELETE /articles/:articleID", "GET /", "GET /admin/stats", "GET /articles/:articleID", "GET,POST /articles", "GET /users/:id", "PATCH /thing", "PUT /grouped"]
    .map((x) => x).filter((x) => !/articleID/.test(x)).concat("GET,DELETE /articles/:articleID")],

  gin: [{
    "main.go": `package main
import "github.com/gin-gonic/gin"
const base = "/api"
func main() {
	r := gin.Default()
	r.GET("/ping", func(c *gin.Context) { c.JSON(200, gin.H{"a": c.Query("/x")}) })
	v1 := r.Group(base + "/v1")
	{
		v1.POST("/login", login)
		users := v1.Group("/users")
		users.GET("/:id", show)
		users.Any("/any", any)
		users.POST("bare", post)
	}
	r.Handle("DELETE", "/gone", gone)
}
`,
  }, ["ANY /api/v1/users/any", "POST /api/v1/users/bare", "DELETE /gone", "GET /api/v1/users/:id", "GET /ping", "POST /api/v1/login"]],

  echo: [{
    "main.go": `package main
import "github.com/labstack/echo/v4"
func main() {
	e := echo.New()
	e.GET("/hello", hello)
	g := e.Group("/admin", mw)
	g.POST("/users", create)
	e.Match([]string{"GET", "PUT"}, "/both", both)
	e.Add("PATCH", "/added", added)
}
`,
  }, ["GET /hello", "GET,PUT /both", "PATCH /added", "POST /admin/users"]],

  "gorilla/mux and fiber": [{
    "a/main.go": `package main
import ("net/http"; "github.com/gorilla/mux")
func main() {
	r := mux.NewRouter()
	r.HandleFunc("/books/{title}", show).Methods("GET", http.MethodPut)
	s := r.PathPrefix("/api").Subrouter()
	s.HandleFunc("/x", x).Methods(http.MethodPost)
}
`,
    "b/main.go": `package main
import "github.com/gofiber/fiber/v2"
func main() {
	app := fiber.New()
	app.Get("/f/:name", h)
	g := app.Group("/g")
	g.Post("/y", y)
	app.All("/all", h)
}
`,
  }, ["ANY /all", "GET /f/:name", "GET,PUT /books/:title", "POST /api/x", "POST /g/y"]],

  "express with routers in other files": [{
    "package.json": pkg("express"),
    "index.js": `const express = require('express');
const app = express();
const users = require('./routes/users');
/* app.get('/commented', h) */
const text = "app.get('/in-string', h)";
const re = /app.get('\\/regex', h)/;
app.get('/', (req, res) => res.send("it's up"));
app.use('/users', auth, users);
app.use('/v1', require('./routes/v1'));
app.route('/book').get(list).post(express.json(), add);
app.get(['/a', '/b'], h);
app.set('view engine', 'pug');
app.get('env');
axios.get('/remote', { headers });
require('./more')(app);
`,
    "routes/users.js": `const { Router } = require('express');
const router = Router();
router.get('/:id', show).delete('/:id', remove);
module.exports = router;
`,
    "routes/v1.js": "import express from 'express';\nimport deep from './deep.js';\nconst r = express.Router();\nr.use('/deep', deep);\nr.post('/orders', h);\nexport default r;\n",
    "routes/deep.js": "import { Router } from 'express';\nexport const router = Router();\nrouter.patch('/x', h);\nexport default router;\n",
    "more.js": "module.exports = function (app) {\n  app.put('/more/:key', handler);\n};\n",
    "client.js": "import axios from 'axios';\nconst api = axios.create();\napi.get('/client-call', params);\napi.post('/client-post', data);\n",
  }, ["GET /", "GET /a", "GET /b", "GET,DELETE /users/:id", "GET,POST /book", "PATCH /v1/deep/x", "POST /v1/orders", "PUT /more/:key"]],

  fastify: [{
    "package.json": pkg("fastify"),
    "server.ts": `import Fastify, { type FastifyInstance } from 'fastify';
import orders from './orders';
const fastify = Fastify({ logger: true });
fastify.get<{ Params: P }>('/ping', async () => 'pong');
fastify.route({ method: ['GET', 'HEAD'], url: '/multi', handler: h });
fastify.register(orders, { prefix: '/orders' });
fastify.register(async (instance) => { instance.post('/inner', h); }, { prefix: '/wrapped' });
`,
    "orders.ts": "import type { FastifyInstance } from 'fastify';\nexport default async function routes(fastify: FastifyInstance, opts: object) {\n  fastify.get('/:id', opts, async () => ({}));\n}\n",
  }, ["GET /orders/:id", "GET /ping", "GET,HEAD /multi", "POST /wrapped/inner"]],

  "hono and koa": [{
    "package.json": pkg("hono", "koa", "@koa/router"),
    "hono.ts": "import { Hono } from 'hono';\nimport { books } from './books';\nconst app = new Hono().basePath('/api');\napp.get('/h', (c) => c.text('x')).post('/h', (c) => c.text('y'));\napp.route('/books', books);\napp.on(['PUT', 'DELETE'], '/on', h);\nexport default app;\n",
    "books.ts": "import { Hono } from 'hono';\nexport const books = new Hono<{ Bindings: B }>();\nbooks.get('/:isbn', (c) => c.json({}));\n",
    "koa.js": "const Koa = require('koa');\nconst Router = require('@koa/router');\nconst router = new Router({ prefix: '/k' });\nrouter.get('/list', async (ctx) => {});\nrouter.del('/:id', h);\nnew Koa().use(router.routes());\n",
  }, ["DELETE /k/:id", "GET /api/books/:isbn", "GET /k/list", "GET,POST /api/h", "PUT,DELETE /api/on"]],

  nestjs: [{
    "package.json": pkg("@nestjs/core"),
    "src/main.ts": "async function bootstrap() { const app = await NestFactory.create(M); app.setGlobalPrefix('api'); }\n",
    "src/cats.controller.ts": "@Controller('cats')\nexport class CatsController {\n  @Get()\n  list() {}\n  @Get(':id')\n  @UseGuards(G)\n  one(@Param('id') id: string) {}\n  @Post('bulk')\n  bulk() {}\n}\n",
  }, ["GET /api/cats", "GET /api/cats/:id", "POST /api/cats/bulk"]],

  fastapi: [{
    "pyproject.toml": '[project]\nname = "svc"\ndependencies = ["fastapi>=0.1"]\n',
    "app/main.py": `from fastapi import FastAPI
from .routers import items
from app.routers.users import router as users_router
app = FastAPI()
PREFIX = "/api"
app.include_router(items.router, prefix=f"{PREFIX}/items")
app.include_router(users_router)
@app.get("/")
def root(): ...
# @app.get("/commented")
DOC = """
@app.get("/in-docstring")
"""
@app.get(f"{PREFIX}/escaped/{{key}}")
def escaped(key): ...
app.add_api_route(PREFIX + "/added", escaped, methods=("PUT",))
@app.api_route("/both", methods=["GET", "POST"])
async def both(): ...
`,
    "app/routers/__init__.py": "",
    "app/routers/items.py": 'from fastapi import APIRouter\nrouter = APIRouter()\n@router.get("/{item_id}")\ndef read(item_id): ...\n@router.put(\n    "/{item_id}",\n    tags=["x"],\n)\ndef put(item_id): ...\n',
    "app/routers/users.py": 'from fastapi import APIRouter\nrouter = APIRouter(prefix="/users", tags=["u"])\n@router.post("")\ndef create(): ...\n@router.get("/{path:path}")\ndef rest(path): ...\n',
    "tests/test_main.py": 'client.get("/test-only")\n',
  }, ["GET /", "GET /api/escaped/:key", "PUT /api/added", "GET /users/*path", "GET,POST /both", "GET,PUT /api/items/:item_id", "POST /users"]],

  flask: [{
    "app.py": `from flask import Flask
from shop import bp
app = Flask(__name__)
app.register_blueprint(bp, url_prefix="/shop")
@app.route("/")
def index(): ...
@app.route("/user/<int:user_id>", methods=["GET", "POST"])
def user(user_id): ...
@app.post("/save")
def save(): ...
app.add_url_rule("/view", view_func=Thing.as_view("thing"))
class Thing(MethodView):
    def get(self): ...
    def delete(self): ...
`,
    "shop.py": 'from flask import Blueprint\nbp = Blueprint("shop", __name__, url_prefix="/ignored")\n@bp.route("/cart")\ndef cart(): ...\n',
  }, ["GET /", "GET /shop/cart", "GET,DELETE /view", "GET,POST /user/:user_id", "POST /save"]],

  django: [{
    "site/urls.py": `from django.urls import path, include, re_path
from django.contrib import admin
from . import views
urlpatterns = [
    path("admin/", admin.site.urls),
    path("", views.home),
    path("blog/", include("blog.urls")),
    re_path(r"^archive/(?P<year>[0-9]{4})/$", views.archive),
]
`,
    "blog/urls.py": 'from django.urls import path\nfrom . import views\napp_name = "blog"\nurlpatterns = [\n    path("<slug:slug>/", views.post),\n    path("new/", views.PostCreate.as_view()),\n]\n',
    "blog/views.py": 'from django.views.generic import CreateView\nfrom django.views.decorators.http import require_http_methods\n@require_http_methods(["GET", "POST"])\ndef post(request, slug): ...\nclass PostCreate(CreateView):\n    model = Post\n',
  }, ["ANY /admin", "GET /", "GET /archive/:year", "GET,POST /blog/:slug", "GET,POST /blog/new"]],

  rails: [{
    "config/routes.rb": `Rails.application.routes.draw do
  root "home#index"
  # get "/commented", to: "x#y"
  get "/about", to: "pages#about"
  resources :posts, only: [:index, :show] do
    resources :comments, only: %i[create]
    member { post :publish }
    collection do
      get :archived
    end
    get :preview, on: :member
  end
  namespace :admin do
    resource :profile, only: :show
  end
  scope "/api" do
    match "search", to: "s#s", via: [:get, :post]
  end
end
`,
  }, ["GET /", "GET /about", "GET /admin/profile", "GET /posts", "GET /posts/:id", "GET /posts/:id/preview", "GET /posts/archived", "GET,POST /api/search", "POST /posts/:id/publish", "POST /posts/:post_id/comments"]],

  sinatra: [{ "app.rb": "require 'sinatra'\nget '/hi/:name' do\n  \"hi\"\nend\npost '/save' do\nend\nvalue = cache.get '/no'\n" }, ["GET /hi/:name", "POST /save"]],

  laravel: [{
    "composer.json": '{"name":"a/b","require":{"laravel/framework":"^11"}}',
    "routes/web.php": `<?php
use Illuminate\\Support\\Facades\\Route;
// Route::get('/commented', fn () => 1);
Route::get('/', [HomeController::class, 'index']);
Route::view('/welcome', 'welcome');
Route::prefix('admin')->middleware('auth')->group(function () {
    Route::post('/users/{user?}', [UserController::class, 'store'])->name('x');
    Route::group(['prefix' => 'deep'], function () { Route::delete('/x', 'C@d'); });
});
Route::resource('photos', PhotoController::class)->only(['index', 'show']);
Route::match(['get', 'post'], '/both', 'C@m');
`,
    "routes/api.php": "<?php\nRoute::apiResource('orders', OrderController::class)->except(['destroy', 'update']);\n",
  }, ["DELETE /admin/deep/x", "GET /", "GET /api/orders/:order", "GET /photos", "GET /photos/:photo", "GET /welcome", "GET,POST /api/orders", "GET,POST /both", "POST /admin/users/:user"]],

  symfony: [{ "src/Controller/BlogController.php": "<?php\n#[Route('/blog', name: 'blog_')]\nfinal class BlogController extends AbstractController {\n    #[Route('/{slug}', methods: ['GET'])]\n    public function show() {}\n}\n" }, ["GET /blog/:slug"]],

  spring: [{ "src/main/java/C.java": 'package x;\n@RestController\n@RequestMapping("/api")\npublic class C {\n  @GetMapping("/a/{id}")\n  public String a() { return "x"; }\n  @RequestMapping(value = {"/b", "/c"}, method = RequestMethod.POST)\n  public String b() { return ""; }\n  // @GetMapping("/commented")\n}\n' }, ["GET /api/a/:id", "POST /api/b", "POST /api/c"]],

  "asp.net": [{
    "Program.cs": 'var app = builder.Build();\napp.MapGet("/min/{id:int}", (int id) => id);\nvar g = app.MapGroup("/grp");\ng.MapPost("/x", Handler);\n',
    "ItemsController.cs": '[ApiController]\n[Route("api/[controller]")]\npublic class ItemsController : ControllerBase {\n  [HttpGet("{id}")]\n  public IActionResult Get(int id) => Ok();\n  [HttpPost]\n  public IActionResult Post() => Ok();\n}\n',
  }, ["GET /api/items/:id", "GET /min/:id", "POST /api/items", "POST /grp/x"]],

  phoenix: [{ "lib/web/router.ex": 'defmodule Web.Router do\n  use Web, :router\n  scope "/", Web do\n    get "/", PageController, :home\n    live "/live", L\n  end\n  scope "/api", Web do\n    resources "/users", UserController, only: [:index, :show]\n    # get "/commented", X, :y\n  end\nend\n' }, ["GET /", "GET /api/users", "GET /api/users/:id", "GET /live"]],

  "axum and actix": [{
    "a/src/main.rs": 'use axum::{routing::{get, post}, Router};\nfn api() -> Router { Router::new().route("/users/{id}", get(show).put(update)) }\nasync fn main() {\n  let app = Router::new().route("/", get(|| async { "hi" })).nest("/api", api());\n  // .route("/commented", get(x))\n}\n',
    "b/src/main.rs": 'use actix_web::{get, web, App};\n#[get("/hello/{name}")]\nasync fn greet() {}\nfn main() {\n  App::new().service(web::scope("/v1").service(greet).route("/x", web::post().to(x)));\n}\n',
  }, ["GET /", "GET /v1/hello/:name", "GET,PUT /api/users/:id", "POST /v1/x"]],

  next: [{
    "package.json": pkg("next"),
    "app/page.tsx": "export default function P() {}",
    "app/(marketing)/pricing/page.tsx": "export default function P() { return <p>Don't</p>; }",
    "app/blog/[slug]/page.mdx": "# x",
    "app/api/users/[id]/route.ts": "export async function GET() {}\nexport const DELETE = h;\n",
    "app/@modal/(.)photo/page.tsx": "export default 1",
    "app/_private/page.tsx": "export default 1",
    "pages/legacy/index.tsx": "export default 1",
    "pages/api/hook.ts": "export default function h(req, res) { if (req.method === 'POST') {} }",
    "pages/_app.tsx": "export default 1",
    "pages/docs/[...rest].js": "export default 1",
  }, ["GET /", "GET /blog/:slug", "GET /docs/*rest", "GET /legacy", "GET /pricing", "GET,DELETE /api/users/:id", "POST /api/hook"]],

  nuxt: [{
    "package.json": pkg("nuxt"), "pages/index.vue": "<template/>", "pages/users/[id].vue": "<template/>", "server/api/items.post.ts": "export default 1", "server/api/items/[id].get.ts": "export default 1", "server/routes/feed.ts": "export default 1",
  }, ["ANY /feed", "GET /", "GET /api/items/:id", "GET /users/:id", "POST /api/items"]],

  sveltekit: [{
    "package.json": pkg("@sveltejs/kit"), "src/routes/+page.svelte": "", "src/routes/(app)/dash/[id=integer]/+page.svelte": "", "src/routes/api/x/+server.ts": "export const GET = () => {};\nexport async function POST() {}", "src/routes/form/+page.svelte": "", "src/routes/form/+page.server.ts": "export const actions = { default: f };", "src/routes/+layout.svelte": "",
  }, ["GET /", "GET /dash/:id", "GET,POST /api/x", "GET,POST /form"]],

  "remix and astro": [{
    "r/package.json": pkg("@remix-run/react"), "r/app/routes/_index.tsx": "export default function I() {}", "r/app/routes/blog.$slug.tsx": "export async function loader() {}\nexport default function B() {}", "r/app/routes/_auth.login.tsx": "export async function action() {}\nexport default function L() {}", "r/app/routes/_auth.tsx": "export default 1", "r/app/routes/feed[.]xml.ts": "export const loader = () => {};", "r/app/routes/files.$.tsx": "export default function F() {}",
    "a/package.json": pkg("astro"), "a/src/pages/about.astro": "", "a/src/pages/posts/[...slug].astro": "", "a/src/pages/api/sub.ts": "export const POST = h;", "a/src/pages/_draft.astro": "",
  }, ["GET /", "GET /about", "GET /blog/:slug", "GET /feed.xml", "GET /files/*path", "GET /posts/*slug", "GET,POST /login", "POST /api/sub"]],

  "react router config, tanstack, solid, gatsby, nitro": [{
    "rr/package.json": pkg("@react-router/dev"), "rr/app/routes.ts": "import { route, index, layout, prefix } from '@react-router/dev/routes';\nexport default [index('./home.tsx'), layout('./l.tsx', [route('login', './login.tsx')]), ...prefix('shop', [index('./s.tsx'), route(':sku', './sku.tsx')])];\n",
    "ts/package.json": pkg("@tanstack/react-router"), "ts/src/routes/posts.$id.tsx": "export const Route = createFileRoute('/_app/posts/$id')({ component: P });",
    "so/package.json": pkg("@solidjs/start"), "so/src/routes/so/[id].tsx": "export default function P() {}", "so/src/routes/so/api.ts": "export async function GET() {}",
    "ga/package.json": pkg("gatsby"), "ga/src/pages/gatsby.js": "export default 1",
    "ni/package.json": pkg("nitropack"), "ni/routes/hi.get.ts": "export default 1",
  }, ["GET /", "GET /gatsby", "GET /hi", "GET /login", "GET /posts/:id", "GET /shop", "GET /shop/:sku", "GET /so/:id", "GET /so/api"]],

  "openapi wins over source": [{
    "openapi.yaml": 'openapi: 3.0.0\nservers:\n  - url: https://api.shop.test/v2\npaths:\n  /pets/{petId}:\n    parameters:\n      - name: x\n    get:\n      responses: {}\n    delete:\n      responses: {}\n  "/pets":\n    post:\n      summary: get\ncomponents: {}\n',
    "sub/swagger.json": '{"swagger":"2.0","basePath":"/legacy","paths":{"/a":{"get":{},"parameters":[]}}}',
    "main.go": 'package main\nimport "net/http"\nfunc main() { http.HandleFunc("/v2/pets/{id}", h); http.HandleFunc("/healthz", h) }\n',
  }, ["ANY /healthz", "GET /legacy/a", "GET,DELETE /v2/pets/:petId", "POST /v2/pets"]],
};

for (const [name, [files, want]] of Object.entries(CASES)) {
  test(`routes: ${name}`, (t) => {
    const doc = collect(write(scratch(t), files), "--no-git");
    assert.deepEqual(routeLines(doc), [...want].sort());
    for (const route of doc.routes) {
      assert.ok(Object.hasOwn(files, route.file), route.file);
      assert.ok(route.line >= 1 && route.line <= String(files[route.file]).split("\n").length, `${route.path} line ${route.line}`);
    }
  });
}

test("routes: commands of cobra, commander, clap, click", (t) => {
  const doc = collect(write(scratch(t), {
    "package.json": JSON.stringify({ name: "tool", bin: { tool: "x.js" }, dependencies: { commander: "1" } }),
    "cmd/root.go": 'package cmd\nimport "github.com/spf13/cobra"\nvar rootCmd = &cobra.Command{Use: "shop", Short: "x"}\nvar serveCmd = &cobra.Command{\n\tUse: "serve [flags]",\n}\nfunc init() { rootCmd.AddCommand(serveCmd); rootCmd.AddCommand(newUser(), a.key()) }\nfunc newUser() *cobra.Command {\n\tcmd := &cobra.Command{Use: "user"}\n\tcmd.AddCommand(&cobra.Command{Use: "x"})\n\treturn cmd\n}\n',
    "cmd/key.go": 'package cmd\nimport "github.com/spf13/cobra"\nfunc (a *app) key() *cobra.Command {\n\tcmd := &cobra.Command{Use: "key"}\n\tcreate := &cobra.Command{Use: "create NAME"}\n\tcmd.AddCommand(create)\n\treturn cmd\n}\n',
    "x.js": "import { program } from 'commander';\nprogram.command('build <dir>').action(f);\n",
    "src/main.rs": "use clap::Subcommand;\n#[derive(Subcommand)]\nenum Cmd {\n  /// Docs\n  AddItem { name: String },\n  List(Args),\n}\n",
    "cli.py": "import click\n@cli.command()\n@click.option('--n')\ndef send_mail(n): ...\n",
  }), "--no-git");
  const found = routeLines(doc, "cli").map((l) => l.slice(4));
  assert.deepEqual(found, ["shop", "shop key", "shop key create", "shop serve", "shop user", "shop user x", "tool add-item", "tool build", "tool list", "tool send-mail"]);
});

test("routes: where they are found and which way they are kind", (t) => {
  const doc = collect(write(scratch(t), { "app.py": "from flask import Flask\napp = Flask(__name__)\n\n@app.route('/page')\ndef p(): ...\n@app.route('/api/x')\ndef x(): ...\n" }), "--no-git");
  assert.deepEqual(doc.routes, [
    { path: "/page", methods: ["GET"], kind: "page", framework: "flask", file: "app.py", line: 4 },
    { path: "/api/x", methods: ["GET"], kind: "api", framework: "flask", file: "app.py", line: 6 },
  ]);
});
