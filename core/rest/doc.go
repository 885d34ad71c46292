// Package rest is the HTTP interface under /api, with the probes beside it. Every
// operation stands in schemas/openapi.json; a route here names its operation, and the
// two are compared when the handler is built. Handlers decode, call one service, and
// encode; what is allowed is decided by the services.
package rest
