// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
)

// echoServer is the echo service in Go.
type echoServer struct {
	left chan time.Duration // until the deadline, of each call of Deadline
	held chan struct{}      // one for each call of Hold that runs
	gate chan struct{}      // closed to let them end
	gone chan error         // why each of them ended
}

func newEchoServer() *echoServer {
	return &echoServer{
		left: make(chan time.Duration, 1),
		held: make(chan struct{}, 1000),
		gate: make(chan struct{}),
		gone: make(chan error, 1000),
	}
}

func (s *echoServer) handle(ctx context.Context, method string, request *info) (*info, error) {
	switch method {
	case "Echo":
		return request, nil
	case "Fail":
		code, text, _ := strings.Cut(request.Name, " ")
		number, err := strconv.Atoi(code)
		if err != nil {
			return nil, err
		}
		return nil, status.Error(codes.Code(number), text)
	case "Grow":
		n, err := strconv.Atoi(request.Name)
		return &info{VendorVersion: strings.Repeat("y", n)}, err
	case "Deadline":
		deadline, is := ctx.Deadline()
		if !is {
			return nil, status.Error(codes.InvalidArgument, "no deadline")
		}
		s.left <- time.Until(deadline)
		return request, nil
	case "Hold":
		s.held <- struct{}{}
		select {
		case <-ctx.Done():
			s.gone <- ctx.Err()
			return nil, ctx.Err()
		case <-s.gate:
			s.gone <- nil
			return request, nil
		}
	}
	return nil, status.Error(codes.Unimplemented, method)
}

// desc has each method of the service.
func (s *echoServer) desc() *grpc.ServiceDesc {
	desc := &grpc.ServiceDesc{ServiceName: "pmem.test.Echo", HandlerType: (*any)(nil)}
	for _, method := range []string{"Echo", "Fail", "Grow", "Deadline", "Hold"} {
		desc.Methods = append(desc.Methods, grpc.MethodDesc{
			MethodName: method,
			Handler: func(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
				request := &info{}
				if err := decode(request); err != nil {
					return nil, err
				}
				return s.handle(ctx, method, request)
			},
		})
	}
	return desc
}

// goServer is grpc-go on a place where our client looks for it.
type goServer struct {
	*echoServer
	t        *testing.T
	kind     string
	address  string
	endpoint string
	options  []grpc.ServerOption
	server   *grpc.Server
}

func startGo(t *testing.T, kind string, options ...grpc.ServerOption) *goServer {
	s := &goServer{echoServer: newEchoServer(), t: t, kind: kind, options: options, address: reserveAddress(t)}
	if kind == "unix" {
		s.address = filepath.Join(folder(t), "s")
	}
	if kind == "mtls" {
		s.options = append(s.options, grpc.Creds(credentials.NewTLS(certificate(t, serverName).config(t))))
	}
	s.serve()
	t.Cleanup(func() { s.server.Stop() })
	return s
}

// sharePort lets two sockets of this process have one port (SO_REUSEPORT in socket(7)).
var sharePort = net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
	var err error
	if failed := c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) }); failed != nil {
		return failed
	}
	return err
}}

// reserveAddress returns an address whose port nothing else gets while the test runs, also while the server is away: a
// socket that is bound to it and does not listen keeps it.
func reserveAddress(t testing.TB) string {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		t.Fatal(err)
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", name.(*unix.SockaddrInet4).Port)
}

// serve starts the server, again at the same place if it had one.
func (s *goServer) serve() {
	s.t.Helper()
	network := "tcp"
	listen := sharePort
	if s.kind == "unix" {
		network, listen = "unix", net.ListenConfig{}
	}
	listener, err := listen.Listen(context.Background(), network, s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.address = listener.Addr().String()
	s.endpoint = network + "://" + s.address
	s.server = grpc.NewServer(s.options...)
	s.server.RegisterService(s.desc(), nil)
	go func(server *grpc.Server) {
		// What it fails with after Stop() means nothing.
		_ = server.Serve(listener)
	}(s.server)
}

// restarted is the state of the echo service after a restart.
func (s *goServer) restart() {
	s.echoServer = newEchoServer()
	s.serve()
}

type answer struct {
	code, text string
	bytes      int
}

// client is a running grpc_client.
type client struct {
	t       *testing.T
	in      io.WriteCloser
	answers sync.Map // of channels, by the number of the call
	last    atomic.Int64
}

func startClient(t *testing.T, s *goServer) *client {
	t.Helper()
	args := []string{s.endpoint}
	if s.kind == "mtls" {
		args = append(certificate(t, clientName).flags(), "-serverName="+serverName, s.endpoint)
	}
	cmd := exec.Command(program(t, "tests/interop/grpc_client"), args...)
	var log strings.Builder
	cmd.Stderr = &log
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &client{t: t, in: in}
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "ready" {
		t.Errorf("grpc_client is not ready: %q", lines.Text())
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines.Scan() {
			c.note(lines.Text())
		}
	}()
	t.Cleanup(func() {
		in.Close()
		<-read
		if err := cmd.Wait(); err != nil {
			t.Errorf("grpc_client: %v\n%s", err, log.String())
		}
	})
	return c
}

func (c *client) note(line string) {
	words := strings.SplitN(line, " ", 4)
	if len(words) < 4 {
		c.t.Errorf("grpc_client says %q", line)
		return
	}
	bytes, err := strconv.Atoi(words[2])
	reply, is := c.answers.LoadAndDelete(words[0])
	if err != nil || !is {
		c.t.Errorf("grpc_client says %q", line)
		return
	}
	reply.(chan answer) <- answer{words[1], words[3], bytes}
}

// start begins a call; its answer comes from the channel.
func (c *client) start(method string, timeout time.Duration, bytes int, name string) (int64, chan answer) {
	id := c.last.Add(1)
	reply := make(chan answer, 1)
	c.answers.Store(fmt.Sprint(id), reply)
	fmt.Fprintf(c.in, "call %d %s %d %d %s\n", id, method, timeout.Milliseconds(), bytes, name)
	return id, reply
}

func (c *client) call(method string, bytes int, name string) answer {
	_, reply := c.start(method, 0, bytes, name)
	return <-reply
}

func (c *client) expect(want answer, got answer) {
	c.t.Helper()
	if got != want {
		c.t.Errorf("%v, expected %v", got, want)
	}
}

// toEach runs a test with our client and a server on each transport.
func toEach(t *testing.T, test func(t *testing.T, s *goServer, c *client), options ...grpc.ServerOption) {
	for _, kind := range []string{"unix", "tcp", "mtls"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := startGo(t, kind, options...)
			test(t, s, startClient(t, s))
		})
	}
}

func TestClientUnary(t *testing.T) {
	toEach(t, func(t *testing.T, _ *goServer, c *client) {
		c.expect(answer{"OK", "some name", 7}, c.call("Echo", 7, "some name"))
		c.expect(answer{"UNIMPLEMENTED", "unknown method Nothing for service pmem.test.Echo", 0},
			c.call("Nothing", 0, "x"))
	})
}

func TestClientErrors(t *testing.T) {
	names := []string{"OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND",
		"ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE",
		"UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "UNKNOWN", "UNAUTHENTICATED"} // there is no ERR_ for DATA_LOSS
	toEach(t, func(t *testing.T, _ *goServer, c *client) {
		for code := 1; code < len(names); code++ {
			for _, text := range []string{"plain", "50% off", "100%25", "größer als 4 €", "\U0001f4be"} {
				c.expect(answer{names[code], text, 0}, c.call("Fail", 0, fmt.Sprint(code, " ", text)))
			}
		}
	})
}

func TestClientSizes(t *testing.T) {
	toEach(t, func(t *testing.T, _ *goServer, c *client) {
		// Fields have a head of 2 to 5 bytes.
		const largest = maxMessage - 5 - 3
		c.expect(answer{"OK", "n", largest}, c.call("Echo", largest, "n"))
		c.expect(answer{"OK", "", 4000000}, c.call("Grow", 0, "4000000"))
		for _, got := range []answer{c.call("Echo", maxMessage, "n"), c.call("Grow", 0, fmt.Sprint(maxMessage))} {
			if got.code != "RESOURCE_EXHAUSTED" {
				t.Error(got)
			}
		}
		c.expect(answer{"OK", "next", 0}, c.call("Echo", 0, "next"))
	}, grpc.MaxRecvMsgSize(2*maxMessage))
}

func TestClientDeadlines(t *testing.T) {
	toEach(t, func(t *testing.T, s *goServer, c *client) {
		_, reply := c.start("Deadline", time.Hour, 0, "x")
		c.expect(answer{"OK", "x", 0}, <-reply)
		if left := <-s.left; left > time.Hour || left < time.Hour-patience {
			t.Error(left)
		}
		_, reply = c.start("Hold", time.Second, 0, "x")
		if got := <-reply; got.code != "DEADLINE_EXCEEDED" {
			t.Error(got)
		}
		if err := <-s.gone; err == nil {
			t.Error("the server does not know")
		}
	})
}

func TestClientCancels(t *testing.T) {
	toEach(t, func(t *testing.T, s *goServer, c *client) {
		id, reply := c.start("Hold", 0, 0, "x")
		<-s.held
		fmt.Fprintf(c.in, "cancel %d\n", id)
		if got := <-reply; got.code != "CANCELLED" {
			t.Error(got)
		}
		if err := <-s.gone; err != context.Canceled {
			t.Error(err)
		}
		c.expect(answer{"OK", "next", 0}, c.call("Echo", 0, "next"))
	})
}

// all makes many calls at once, which all succeed.
func (c *client) all(n int, method string) {
	c.t.Helper()
	replies := make([]chan answer, n)
	for i := range n {
		_, replies[i] = c.start(method, 0, i, fmt.Sprint(i))
	}
	for i, reply := range replies {
		c.expect(answer{"OK", fmt.Sprint(i), i}, <-reply)
	}
}

func TestClientManyCalls(t *testing.T) {
	toEach(t, func(t *testing.T, _ *goServer, c *client) { c.all(1000, "Echo") })
}

func TestClientWaitsForStreams(t *testing.T) {
	toEach(t, func(t *testing.T, _ *goServer, c *client) { c.all(100, "Echo") }, grpc.MaxConcurrentStreams(3))
}

// A server that ends orderly finishes what runs; the next call finds the one that follows it.
func TestClientGracefulStop(t *testing.T) {
	toEach(t, func(t *testing.T, s *goServer, c *client) {
		_, running := c.start("Hold", 0, 0, "finished")
		<-s.held
		old := s.echoServer
		stopped := make(chan struct{})
		go func(server *grpc.Server) {
			server.GracefulStop()
			close(stopped)
		}(s.server)
		// Until the listener is closed and the GOAWAY is here.
		within(t, "a server that takes nothing more", func() bool { return c.call("Echo", 0, "x").code == "UNAVAILABLE" })
		close(old.gate)
		c.expect(answer{"OK", "finished", 0}, <-running)
		<-stopped
		s.restart()
		within(t, "the new server", func() bool { return c.call("Echo", 0, "x").code == "OK" })
	})
}

// A server that goes away takes its calls with it.
func TestClientLosesServer(t *testing.T) {
	toEach(t, func(t *testing.T, s *goServer, c *client) {
		for range 3 {
			_, running := c.start("Hold", 0, 0, "x")
			<-s.held
			s.server.Stop()
			if got := <-running; got.code != "UNAVAILABLE" {
				t.Error(got)
			}
			s.restart()
			within(t, "the new server", func() bool { return c.call("Echo", 0, "x").code == "OK" })
		}
	})
}

// Connections that the server ends by GOAWAY again and again lose no call.
func TestClientOutlivesConnections(t *testing.T) {
	const calls = 300
	age := keepalive.ServerParameters{MaxConnectionAge: 50 * time.Millisecond, MaxConnectionAgeGrace: patience}
	var connections atomic.Int32
	counted := grpc.StatsHandler(countConnections{&connections})
	toEach(t, func(t *testing.T, _ *goServer, c *client) {
		done := 0
		within(t, "three connections", func() bool {
			c.all(calls, "Echo")
			done += calls
			return connections.Load() >= 9
		})
		t.Logf("%d calls over %d connections of three clients", done, connections.Load())
	}, grpc.KeepaliveParams(age), counted)
}

// Pings of the server are answered: it would close the connection otherwise. 1 s is the least that it takes.
func TestClientAnswersPings(t *testing.T) {
	pings := keepalive.ServerParameters{Time: time.Second, Timeout: time.Second}
	toEach(t, func(t *testing.T, s *goServer, c *client) {
		_, reply := c.start("Hold", 0, 0, "held")
		<-s.held
		timeout := time.NewTimer(4 * time.Second)
		select {
		case got := <-reply:
			t.Error(got)
		case err := <-s.gone:
			t.Error(err)
		case <-timeout.C:
			close(s.gate)
			c.expect(answer{"OK", "held", 0}, <-reply)
		}
	}, grpc.KeepaliveParams(pings))
}
