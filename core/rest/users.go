package rest

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/auth"
)

func (s *server) userRoutes() []route {
	return []route{
		{"GET /api/users", "listUsers", s.listUsers},
		{"POST /api/users", "addUser", s.addUser},
		{"PATCH /api/users/{id}", "editUser", s.editUser},
	}
}

func (s *server) listUsers(w http.ResponseWriter, r *http.Request) error {
	q, err := query(r)
	if err != nil {
		return err
	}
	page, err := s.Auth.Users(r.Context(), requestOf(r).principal, q)
	if err != nil {
		return err
	}
	return replyPage(w, r, s, "users", page)
}

func (s *server) addUser(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Email, Name, Password string
		Role                  core.UserRole
	}
	if err := decode(r, &in); err != nil {
		return err
	}
	u, err := s.Auth.AddUser(r.Context(), requestOf(r).principal, auth.NewUser{Email: in.Email, Name: in.Name, Password: in.Password, Role: in.Role})
	if err != nil {
		return err
	}
	return reply(w, u)
}

func (s *server) editUser(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Role     *core.UserRole
		Disabled *bool
	}
	if err := decode(r, &in); err != nil {
		return err
	}
	u, err := s.Auth.EditUser(r.Context(), requestOf(r).principal, chi.URLParam(r, "id"), in.Role, in.Disabled)
	if err != nil {
		return err
	}
	return reply(w, u)
}
