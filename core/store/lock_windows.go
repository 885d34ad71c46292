//go:build windows

package store

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/windows"
)

var errLocked = errors.New("the file is locked by another process")

// lockFile takes an exclusive lock that ends with the process.
func lockFile(path string) (unlock func(), err error) {
	return lockWith(path, windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY)
}

// waitForFile is lockFile, but waits for the other process.
func waitForFile(path string) (unlock func(), err error) {
	return lockWith(path, windows.LOCKFILE_EXCLUSIVE_LOCK)
}

func lockWith(path string, flags uint32) (func(), error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock file: %w", err)
	}
	if err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, new(windows.Overlapped)); err != nil {
		_ = f.Close()
		if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
			return nil, errLocked
		}
		return nil, fmt.Errorf("lock the file: %w", err)
	}
	return func() { _ = f.Close() }, nil
}
