// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// churn opens connections for one call each, several at once, as kubelet does.
func churn(t *testing.T, connections int, dialOne func() (*grpc.ClientConn, error),
	callOn func(context.Context, *grpc.ClientConn) error) {
	const atOnce = 8
	var all sync.WaitGroup
	for range atOnce {
		all.Go(func() {
			for range connections / atOnce {
				conn, err := dialOne()
				if err == nil {
					err = callOn(t.Context(), conn)
					conn.Close()
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

// rssKiB is the memory of a process that is in use.
func rssKiB(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(text), "\n") {
		var kib int
		if n, _ := fmt.Sscanf(line, "VmRSS: %d kB", &kib); n == 1 {
			return kib
		}
	}
	t.Fatal("no VmRSS")
	return 0
}

func descriptors(t *testing.T, pid int) int {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}

// flat asserts that a server holds as much after many connections as after some.
func flat(t *testing.T, pid, many int, some func(connections int)) {
	const maxGrowthKiB = 2048
	warm := many / 10
	fds := descriptors(t, pid)
	some(warm)
	before := rssKiB(t, pid)
	some(many)
	after := rssKiB(t, pid)
	t.Logf("RSS after %d connections %d KiB, after %d more %d KiB", warm, before, many, after)
	if after > before+maxGrowthKiB {
		t.Errorf("RSS grew from %d to %d KiB", before, after)
	}
	within(t, "descriptors to be closed", func() bool { return descriptors(t, pid) <= fds })
}

func TestManyConnections(t *testing.T) {
	onEach(t, func(t *testing.T, e *echo) {
		var creds credentials.TransportCredentials = e.transport.creds(t)
		e.conn.Close()
		many := 10000
		if e.transport.name == "mtls" {
			many = 1000 // of a hundred times the work
		}
		flat(t, e.cmd.Process.Pid, many, func(connections int) {
			churn(t, connections,
				func() (*grpc.ClientConn, error) {
					return grpc.NewClient(e.target(), grpc.WithTransportCredentials(creds))
				},
				func(ctx context.Context, conn *grpc.ClientConn) error {
					_, err := call(ctx, conn, "Echo", &info{Name: "x"})
					return err
				})
		})
	})
}
