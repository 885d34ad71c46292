//go:build browser

package browser

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/sallyport-dev/sallyport/core/e2e/harness"
)

// program finds a Chromium.
func program() (string, error) {
	if path := os.Getenv("SALLYPORT_TEST_CHROMIUM"); path != "" {
		return exec.LookPath(path)
	}
	for _, name := range []string{"chromium", "chromium-headless-shell", "google-chrome-stable", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("no chromium on PATH; install the package chromium or set SALLYPORT_TEST_CHROMIUM")
}

// tab is a page of a browser without scripts, used by keyboard.
type tab struct {
	*testing.T
	ctx     context.Context
	base    string
	screens string
	width   int64
	dark    bool
}

var sayOnce sync.Once

// open starts a browser with an empty profile. The test is skipped where there is none,
// which is a failure in CI.
func open(t *testing.T) *tab {
	t.Helper()
	path, err := program()
	if err != nil {
		sayOnce.Do(func() { fmt.Printf("not run: browser tests: %v\n", err) })
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	root, err := harness.Root()
	if err != nil {
		t.Fatal(err)
	}
	b := &tab{T: t, screens: filepath.Join(root, "var", "screens"), width: 390}
	b.ok(os.MkdirAll(b.screens, 0o755))
	opts := []chromedp.ExecAllocatorOption{chromedp.ExecPath(path), chromedp.UserDataDir(t.TempDir()), chromedp.NoSandbox, chromedp.DisableGPU}
	for _, flag := range []string{"disable-quic", "disable-component-update", "disable-domain-reliability"} {
		opts = append(opts, chromedp.Flag(flag, true))
	}
	opts = append(chromedp.DefaultExecAllocatorOptions[:], opts...)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, opts...)
	t.Cleanup(cancel)
	b.ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	b.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return err
	}))
	b.size(390)
	return b
}

func (b *tab) ok(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	b.ok(chromedp.Do(b.ctx, steps...))
}

// eval asks the debugger about the page; the page's own scripts stay off.
func eval[T any](b *tab, expression string) T {
	b.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.Fatalf("%s: %v", expression, err)
	}
	return v
}

// size makes the window so wide; heights are those of usual screens.
func (b *tab) size(width int64) {
	b.Helper()
	height := int64(844)
	if width > 800 {
		height = 900
	}
	b.width = width
	b.do(chromedp.EmulateViewport(width, height))
}

func (b *tab) setDark(on bool) {
	b.Helper()
	b.dark = on
	value := "light"
	if on {
		value = "dark"
	}
	b.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: value}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
		return err
	}))
}

func (b *tab) visit(path string) {
	b.Helper()
	if strings.HasPrefix(path, "/") {
		path = b.base + path
	}
	r, err := chromedp.RunResponse(b.ctx, chromedp.Navigate(path))
	if err != nil {
		b.Fatalf("%s: %v", path, err)
	}
	if r.Status >= 400 {
		b.Fatalf("%s: status %d", path, r.Status)
	}
}

// path is where the tab is.
func (b *tab) path() string {
	return eval[string](b, `location.pathname + location.hash`)
}

func (b *tab) text() string { return eval[string](b, `document.body.innerText`) }

func (b *tab) reads(wants ...string) {
	b.Helper()
	text := b.text()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			b.Fatalf("%s does not read %q but\n%s", b.path(), want, text)
		}
	}
}

// focus presses Tab until the element has the focus that selector names. Where the
// focus goes it must be seen.
func (b *tab) focus(selector string) {
	b.Helper()
	for range 400 {
		b.do(chromedp.KeyEvent(kb.Tab))
		if lost := eval[string](b, unseen); lost != "" {
			b.Errorf("%s at %d px: the focus is on %s, which cannot be seen", b.path(), b.width, lost)
		}
		if eval[bool](b, fmt.Sprintf(`document.activeElement.matches(%q)`, selector)) {
			return
		}
	}
	b.Fatalf("%s: %s cannot be reached by keyboard", b.path(), selector)
}

// unseen names what has the focus if a person could not tell that it has: no ring around
// it, or nothing of it in sight.
const unseen = `(() => {
	const e = document.activeElement;
	if (!e || e === document.body) return "";
	const name = e.tagName + "." + e.className + "#" + e.id;
	const style = getComputedStyle(e);
	if (style.outlineStyle === "none" || parseFloat(style.outlineWidth) < 2) return name + " (no ring)";
	const r = e.getBoundingClientRect();
	const x = Math.min(Math.max(r.left + r.width / 2, 1), innerWidth - 2);
	for (const y of [r.top + 2, r.top + r.height / 2, r.bottom - 2]) {
		const top = document.elementFromPoint(x, Math.min(Math.max(y, 1), innerHeight - 2));
		if (top && (e === top || e.contains(top) || top.contains(e))) return "";
	}
	return name + " (covered)";
})()`

func (b *tab) write(text string) { b.do(chromedp.KeyEvent(text)) }

// press presses a key that leads to another page and waits until it stands.
func (b *tab) press(key string) int64 {
	b.Helper()
	r, err := chromedp.RunResponse(b.ctx, chromedp.KeyEvent(key))
	if err != nil {
		b.Fatalf("after %q on %s: %v", key, b.path(), err)
	}
	return r.Status
}

// looks checks the page in every size and both colours, and takes screenshots.
func (b *tab) looks(name string) {
	b.Helper()
	for _, dark := range []bool{false, true} {
		b.setDark(dark)
		for _, width := range []int64{320, 390, 1280} {
			b.size(width)
			b.fits(name)
			shot := fmt.Sprintf("%s-%d", name, width)
			if dark {
				shot += "-dark"
			}
			b.shoot(shot)
		}
	}
	b.setDark(false)
	b.size(390)
}

func (b *tab) shoot(name string) {
	b.Helper()
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	b.ok(err)
	b.ok(os.WriteFile(filepath.Join(b.screens, name+".png"), png, 0o644))
	if b.dark || b.width == 320 {
		return
	}
	png, err = chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	b.ok(err)
	b.ok(os.WriteFile(filepath.Join(b.screens, name+"-whole.png"), png, 0o644))
}

// fits checks what a machine can see of a page that is good to use.
func (b *tab) fits(name string) {
	b.Helper()
	if wide := eval[[]string](b, overflowing); len(wide) > 0 {
		b.Errorf("%s at %d px scrolls sideways: %s", name, b.width, strings.Join(wide, ", "))
	}
	if small := eval[[]string](b, smallTargets); len(small) > 0 {
		b.Errorf("%s at %d px has targets that are hard to hit: %s", name, b.width, strings.Join(small, ", "))
	}
	if faint := eval[[]string](b, faintText); len(faint) > 0 {
		b.Errorf("%s at %d px, dark %v, has text that is hard to read: %s", name, b.width, b.dark, strings.Join(faint, "; "))
	}
}

const overflowing = `(() => {
	const d = document.documentElement;
	if (d.scrollWidth <= d.clientWidth && document.body.scrollWidth <= d.clientWidth) return [];
	const out = ["page " + d.scrollWidth];
	for (const e of document.querySelectorAll("body *")) {
		const r = e.getBoundingClientRect();
		if (r.right > d.clientWidth + 1 && r.width > 0) out.push(e.tagName + "." + e.className + " " + Math.round(r.right));
	}
	return out.slice(0, 8);
})()`

// smallTargets lists what is pressed and is less than 44 px high. Links within a text
// are as high as their line.
const smallTargets = `[...document.querySelectorAll("button, .button, summary, nav.main a, input:not([type=hidden]), textarea")]
	.filter(e => e.checkVisibility() && e.getBoundingClientRect().height < 43.5)
	.map(e => e.tagName + " " + e.textContent.trim().slice(0, 30) + " " + Math.round(e.getBoundingClientRect().height))`

// faintText lists texts whose contrast to what is behind them is below 4.5 to 1.
const faintText = `(() => {
	const parse = c => { const m = c.match(/[\d.]+/g).map(Number); return m.length < 4 ? [...m, 1] : m; };
	const lum = c => { const f = c.slice(0, 3).map(v => { v /= 255; return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; }); return .2126 * f[0] + .7152 * f[1] + .0722 * f[2]; };
	const seen = new Set(), out = [];
	const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (walk.nextNode()) {
		const e = walk.currentNode.parentElement;
		if (!walk.currentNode.data.trim() || !e.checkVisibility() || e.closest(".hidden-label, .skip, thead")) continue;
		let back = e;
		while (back && parse(getComputedStyle(back).backgroundColor)[3] === 0) back = back.parentElement;
		const bg = back ? parse(getComputedStyle(back).backgroundColor) : [255, 255, 255, 1];
		const fg = parse(getComputedStyle(e).color);
		const [a, b] = [lum(fg), lum(bg)].sort((x, y) => y - x);
		const ratio = (a + .05) / (b + .05);
		const key = fg + "/" + bg;
		if (ratio < 4.5 && !seen.has(key)) { seen.add(key); out.push(walk.currentNode.data.trim().slice(0, 30) + " " + ratio.toFixed(2)); }
	}
	return out;
})()`
