// Package auth knows who calls: people with passwords and sessions, access tokens for
// scripts, keys for agents and services. It turns every credential into a
// core.Principal in one workspace, and is the only place where a credential is made,
// compared or withdrawn. Secrets are stored as hashes only.
package auth
