//go:build !unix

package testdb

import (
	"errors"
	"os/exec"
)

type asUser struct{}

func ordinaryUser() (asUser, error) {
	return asUser{}, errors.New("tests start Postgres on Unix only; set " + EnvURL)
}

func (asUser) own(string) error { return nil }

func (asUser) command(name string, args ...string) *exec.Cmd { return exec.Command(name, args...) }

func detach(*exec.Cmd) {}
