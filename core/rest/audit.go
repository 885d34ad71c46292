package rest

import "net/http"

func (s *server) auditRoutes() []route {
	return []route{{"GET /api/audit-logs", "listAuditLogs", s.listAuditLogs}}
}

func (s *server) listAuditLogs(w http.ResponseWriter, r *http.Request) error {
	q, err := query(r)
	if err != nil {
		return err
	}
	page, err := listOf(r.Context(), requestOf(r).principal, q, s.Audit.List)
	if err != nil {
		return err
	}
	return replyPage(w, r, s, "entries", page)
}
