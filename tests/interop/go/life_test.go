// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
)

func TestDeadlines(t *testing.T) {
	onEach(t, func(t *testing.T, e *echo) {
		e.call("Echo", &info{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := call(ctx, e.conn, "Wait", &info{}); status.Code(err) != codes.DeadlineExceeded {
			t.Error(err)
		}
		e.untilWaiting(1)
		e.release()
		e.call("Work", &info{})
	})
}

func TestCancel(t *testing.T) {
	onEach(t, func(t *testing.T, e *echo) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			_, err := call(ctx, e.conn, "Wait", &info{})
			ended <- err
		}()
		e.untilWaiting(1)
		cancel()
		if err := <-ended; status.Code(err) != codes.Canceled {
			t.Error(err)
		}
		e.release()
		e.call("Work", &info{})
	})
}

func TestClientThatGoes(t *testing.T) {
	onEach(t, func(t *testing.T, e *echo) {
		conn := e.dial()
		ended := make(chan error)
		go func() {
			_, err := call(t.Context(), conn, "Wait", &info{})
			ended <- err
		}()
		e.untilWaiting(1)
		conn.Close()
		if err := <-ended; err == nil {
			t.Error("a call without connection succeeded")
		}
		e.release()
		e.call("Work", &info{})
	})
}

// SIGTERM: a call that runs is finished, and new ones find no server.
func TestDrain(t *testing.T) {
	onEach(t, func(t *testing.T, e *echo) {
		other := e.dial()
		if _, err := call(t.Context(), other, "Echo", &info{}); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error)
		go func() {
			reply, err := call(t.Context(), e.conn, "Wait", &info{Name: "finished"})
			if err == nil && reply.Name != "finished" {
				err = fmt.Errorf("reply %q", reply.Name)
			}
			ended <- err
		}()
		e.untilWaiting(1)
		e.signal(syscall.SIGTERM)
		within(t, "refusals", func() bool {
			_, err := call(t.Context(), other, "Echo", &info{})
			return status.Code(err) == codes.Unavailable
		})
		e.signal(syscall.SIGUSR1)
		if err := <-ended; err != nil {
			t.Error(err)
		}
		<-e.ended
	})
}

// A stream without a message holds a place: the server allows 100, and further ones wait for a free one.
func TestMoreStreamsThanAllowed(t *testing.T) {
	const allowed, all = 100, 250
	desc := &grpc.StreamDesc{ClientStreams: true}
	onEach(t, func(t *testing.T, e *echo) {
		var open, calls sync.WaitGroup
		var sent atomic.Int32
		gate := make(chan struct{})
		open.Add(allowed)
		for i := range all {
			calls.Go(func() {
				stream, err := e.conn.NewStream(t.Context(), desc, echoService+"Echo")
				if err != nil {
					t.Error(err)
					return
				}
				if sent.Add(1) <= allowed {
					open.Done()
				}
				<-gate
				reply := &info{}
				err = stream.SendMsg(&info{Name: fmt.Sprint(i)})
				if err == nil {
					err = stream.CloseSend()
				}
				if err == nil {
					err = stream.RecvMsg(reply)
				}
				if err != nil || reply.Name != fmt.Sprint(i) {
					t.Errorf("stream %d: %q, %v", i, reply.Name, err)
				}
			})
		}
		open.Wait()
		close(gate)
		calls.Wait()
	})
}

func TestManyCallsInFlight(t *testing.T) {
	onEach(t, func(t *testing.T, e *echo) {
		var calls sync.WaitGroup
		for i := range 200 {
			calls.Go(func() {
				for k := range 20 {
					name := fmt.Sprintf("%d-%d", i, k)
					reply, err := call(t.Context(), e.conn, "Echo", &info{Name: name})
					if err != nil || reply.Name != name {
						t.Errorf("%q: %v", reply.GetName(), err)
					}
				}
			})
		}
		calls.Wait()
	})
}

// frameCounter counts, in what a connection reads, the PINGs that are acknowledgements of those that keepalive sends.
type frameCounter struct {
	net.Conn
	head  []byte
	skip  int
	pings *atomic.Int32
}

func (c *frameCounter) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	for _, octet := range b[:n] {
		if c.skip > 0 {
			c.skip--
			continue
		}
		// RFC 9113 section 4.1: length of 3 octets, type, flags, stream; then of a PING, 8 octets of data
		if c.head = append(c.head, octet); len(c.head) < 9 {
			continue
		}
		length := int(c.head[0])<<16 | int(c.head[1])<<8 | int(c.head[2])
		isPing := c.head[3] == 6
		if isPing && len(c.head) < 9+length {
			continue
		}
		if isPing && c.head[4] == 1 && strings.Trim(string(c.head[9:]), "\x00") == "" {
			c.pings.Add(1)
		}
		if !isPing {
			c.skip = length
		}
		c.head = c.head[:0]
	}
	return n, err
}

// countingCreds counts connections, and the pings that are answered on them.
type countingCreds struct {
	credentials.TransportCredentials
	pings, connections *atomic.Int32
}

func (c countingCreds) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (
	net.Conn, credentials.AuthInfo, error) {
	c.connections.Add(1)
	conn, info, err := c.TransportCredentials.ClientHandshake(ctx, authority, raw)
	if err != nil {
		return nil, nil, err
	}
	return &frameCounter{Conn: conn, pings: c.pings}, info, nil
}

func (c countingCreds) Clone() credentials.TransportCredentials {
	return countingCreds{c.TransportCredentials.Clone(), c.pings, c.connections}
}

// 10 s is the least that grpc-go takes; without an answer it would close the connection.
func TestKeepalive(t *testing.T) {
	onEach(t, func(t *testing.T, e *echo) {
		var pings, connections atomic.Int32
		conn := dial(t, e.target(), countingCreds{e.transport.creds(t), &pings, &connections},
			grpc.WithKeepaliveParams(keepalive.ClientParameters{
				Time: 10 * time.Second, Timeout: patience, PermitWithoutStream: true,
			}))
		if _, err := call(t.Context(), conn, "Echo", &info{}); err != nil {
			t.Fatal(err)
		}
		within(t, "answers to pings", func() bool { return pings.Load() >= 1 })
		if _, err := call(t.Context(), conn, "Echo", &info{}); err != nil || connections.Load() != 1 {
			t.Errorf("%v, %d connections", err, connections.Load())
		}
	})
}

// Both ends on one path: a server that comes back serves clients that were there before.
func TestRestart(t *testing.T) {
	tr := transports[0]
	first := startEcho(t, tr)
	first.call("Echo", &info{})
	first.stop()
	if _, err := os.Stat(first.dir + "/s"); err == nil {
		t.Error("the socket is still there")
	}
	second := start(t, program(t, "tests/interop/echo_server"), tr.endpoint(t, first.dir)...)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	reply := &info{}
	err := first.conn.Invoke(ctx, echoService+"Echo", &info{Name: "again"}, reply, grpc.WaitForReady(true))
	if err != nil || reply.Name != "again" {
		t.Errorf("%q, %v\n%s", reply.Name, err, second.log.String())
	}
}
