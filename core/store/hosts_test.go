package store_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/store"
	"github.com/sallyport-dev/sallyport/core/store/testdb"
)

// helperEnv makes the test binary act as a second host.
const helperEnv = "STORE_TEST_SECOND_HOST"

func TestMain(m *testing.M) {
	if url := os.Getenv(helperEnv); url != "" {
		db, err := store.Open(context.Background(), store.Options{URL: url})
		if err == nil {
			_, err = db.LockHost(context.Background())
		}
		if err != nil {
			fmt.Println(core.AsError(err).Code)
			os.Exit(0)
		}
		fmt.Println("locked")
		select {} // until killed
	}
	os.Exit(m.Run())
}

func TestSecondHost(t *testing.T) {
	url := testdb.SQLiteURL(t)
	db := testdb.Open(t, url, nil)
	release, err := db.LockHost(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	second := func() (string, *exec.Cmd) {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), helperEnv+"="+url)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 100)
		n, _ := out.Read(b)
		return strings.TrimSpace(string(b[:n])), cmd
	}
	said, cmd := second()
	_ = cmd.Wait()
	if said != "host_running" {
		t.Errorf("a second host beside the first: %s", said)
	}
	release()
	said, cmd = second()
	if said != "locked" {
		t.Errorf("after the first is gone: %s", said)
	}
	if _, err := db.LockHost(context.Background()); core.AsError(err).Code != "host_running" {
		t.Errorf("beside the second: %v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if release, err = db.LockHost(context.Background()); err != nil {
		t.Errorf("the lock of a killed host stays: %v", err)
	} else {
		release()
	}
}

func TestHostsShareOnePostgres(t *testing.T) {
	url := testdb.PostgresURL(t)
	a, b := testdb.Open(t, url, nil), testdb.Open(t, url, nil)
	for _, db := range []*store.DB{a, b} {
		release, err := db.LockHost(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		defer release()
	}
	if hosts, err := a.SystemHosts(context.Background()); err != nil || len(hosts) != 2 {
		t.Errorf("%+v, %v", hosts, err)
	}
}
