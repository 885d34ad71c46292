// Package draft turns evidence into copy without inventing anything: facts with roles, rewrite operators that keep the
// meaning, channel rules, and the checks that every draft passes whoever wrote it. Skills differ in what they compose;
// this package is what they share.
package draft
