// SPDX-License-Identifier: Apache-2.0

// Package interop lets grpc-go talk to the programs of this tree, in both roles.
//
// PMEM_BUILD names the build folder; echo_server and grpc_client come from its tests/interop, pmem-csi-driver from its
// bin. Nothing here sleeps: what has to be waited for is asked for until it is so.
package interop

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

const (
	echoService = "/pmem.test.Echo/"
	patience    = 60 * time.Second
	maxMessage  = 4 << 20
	serverName  = "pmem-registry"
	clientName  = "pmem-node-controller"
)

// soon is how long a connection waits after one that failed.
var soon = backoff.Config{BaseDelay: time.Millisecond, Multiplier: 2, MaxDelay: 100 * time.Millisecond}

// info is the message that the echo service takes and gives.
type info = csi.GetPluginInfoResponse

// program is a file of the build folder.
func program(t testing.TB, path string) string {
	t.Helper()
	build := os.Getenv("PMEM_BUILD")
	if build == "" {
		t.Fatal("PMEM_BUILD must name a build folder")
	}
	return filepath.Join(build, path)
}

// within repeats the question until the answer is yes.
func within(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited %v for %s", patience, what)
		}
	}
}

// folder is short enough for the names of unix sockets, which t.TempDir() need not be.
func folder(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "pmem-go-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// process is a program that has said that it is ready.
type process struct {
	t     testing.TB
	cmd   *exec.Cmd
	words []string // of its first line
	log   bytes.Buffer
	ended chan struct{}
	err   error
	once  sync.Once
}

// start runs a program, which must end orderly on SIGTERM, until the test ends.
func start(t testing.TB, path string, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(path, args...), ended: make(chan struct{})}
	p.cmd.Stderr = &p.log
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if lines.Scan() {
		p.words = strings.Fields(lines.Text())
	}
	go func() {
		for lines.Scan() {
		}
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(p.stop)
	if len(p.words) == 0 || p.words[0] != "ready" {
		p.stop()
		t.Fatalf("%s did not get ready: %s", filepath.Base(path), p.log.String())
	}
	return p
}

func (p *process) signal(s os.Signal) {
	// It may have ended, which the caller finds out by other means.
	_ = p.cmd.Process.Signal(s)
}

// stop ends the program and looks at how it ends.
func (p *process) stop() {
	p.once.Do(func() {
		p.signal(syscall.SIGTERM)
		select {
		case <-p.ended:
		case <-time.After(patience):
			_ = p.cmd.Process.Kill()
			<-p.ended
			p.t.Errorf("%s had to be killed", filepath.Base(p.cmd.Path))
		}
		if p.err != nil {
			p.t.Errorf("%s: %v\n%s", filepath.Base(p.cmd.Path), p.err, p.log.String())
		}
	})
}

// identity is what one side of a mutual TLS connection shows and trusts.
type identity struct {
	ca, cert, key string
}

var makeCertificates = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "pmem-go-certs-")
	if err != nil {
		return "", err
	}
	out, err := exec.Command("../../../scripts/make-certs", "-o", dir, serverName, clientName).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("make-certs: %w: %s", err, out)
	}
	return dir, err
})

// certificate is one of those that scripts/make-certs makes, with the authority of them all.
func certificate(t testing.TB, name string) identity {
	t.Helper()
	dir, err := makeCertificates()
	if err != nil {
		t.Fatal(err)
	}
	return identity{ca: dir + "/ca.pem", cert: dir + "/" + name + ".pem", key: dir + "/" + name + "-key.pem"}
}

func TestMain(m *testing.M) {
	status := m.Run()
	if dir, _ := makeCertificates(); dir != "" {
		os.RemoveAll(dir)
	}
	os.Exit(status)
}

// flags are those of our programs.
func (id identity) flags() []string {
	return []string{"-caFile=" + id.ca, "-certFile=" + id.cert, "-keyFile=" + id.key}
}

func (id identity) config(t testing.TB) *tls.Config {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(id.cert, id.key)
	if err != nil {
		t.Fatal(err)
	}
	pem, err := os.ReadFile(id.ca)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		t.Fatalf("no certificate in %s", id.ca)
	}
	return &tls.Config{
		Certificates: []tls.Certificate{pair},
		RootCAs:      pool,
		ClientCAs:    pool,
		ClientAuth:   tls.RequireAndVerifyClientCert,
	}
}

// transport is a way from client to server.
type transport struct {
	name     string
	endpoint func(t testing.TB, dir string) []string // arguments of echo_server
	target   func(dir, port string) string           // of grpc-go
	creds    func(t testing.TB) credentials.TransportCredentials
}

func plain(testing.TB) credentials.TransportCredentials {
	return insecure.NewCredentials()
}

var transports = []transport{
	{
		name:     "unix",
		endpoint: func(_ testing.TB, dir string) []string { return []string{"unix://" + dir + "/s"} },
		target:   func(dir, _ string) string { return "unix://" + dir + "/s" },
		creds:    plain,
	},
	{
		name:     "tcp",
		endpoint: func(testing.TB, string) []string { return []string{"tcp://127.0.0.1:0"} },
		target:   func(_, port string) string { return "passthrough:///127.0.0.1:" + port },
		creds:    plain,
	},
	{
		name: "mtls",
		endpoint: func(t testing.TB, _ string) []string {
			return append(certificate(t, serverName).flags(), "-peerName="+clientName, "tcp://127.0.0.1:0")
		},
		target: func(_, port string) string { return "passthrough:///127.0.0.1:" + port },
		creds: func(t testing.TB) credentials.TransportCredentials {
			config := certificate(t, clientName).config(t)
			config.ServerName = serverName
			return credentials.NewTLS(config)
		},
	},
}

// echo is a running echo_server and a connection to it.
type echo struct {
	*process
	t         testing.TB
	transport transport
	dir       string
	conn      *grpc.ClientConn
}

// startEcho starts a server for one test.
func startEcho(t testing.TB, tr transport) *echo {
	t.Helper()
	e := &echo{t: t, transport: tr, dir: folder(t)}
	e.process = start(t, program(t, "tests/interop/echo_server"), tr.endpoint(t, e.dir)...)
	e.conn = e.dial()
	return e
}

func (e *echo) target() string {
	return e.transport.target(e.dir, e.words[len(e.words)-1])
}

// dial makes a connection of its own.
func (e *echo) dial(options ...grpc.DialOption) *grpc.ClientConn {
	e.t.Helper()
	return dial(e.t, e.target(), e.transport.creds(e.t), options...)
}

func dial(t testing.TB, target string, creds credentials.TransportCredentials,
	options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	own := []grpc.DialOption{
		grpc.WithTransportCredentials(creds),
		grpc.WithDisableRetry(),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: soon, MinConnectTimeout: patience}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(2*maxMessage), grpc.MaxCallSendMsgSize(2*maxMessage)),
	}
	conn, err := grpc.NewClient(target, append(own, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func call(ctx context.Context, conn *grpc.ClientConn, method string, request *info) (*info, error) {
	reply := &info{}
	err := conn.Invoke(ctx, echoService+method, request, reply)
	return reply, err
}

// call is answered, or the test is over.
func (e *echo) call(method string, request *info) *info {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	reply, err := call(ctx, e.conn, method, request)
	if err != nil {
		e.t.Fatalf("%s: %v", method, err)
	}
	return reply
}

// fails makes a call that ends with a code, and returns its text.
func (e *echo) fails(code codes.Code, method string, request *info) string {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err := call(ctx, e.conn, method, request)
	if status.Code(err) != code {
		e.t.Errorf("%s: %v, expected %v", method, err, code)
	}
	return status.Convert(err).Message()
}

func (e *echo) waiting() string {
	e.t.Helper()
	return e.call("Waiting", &info{}).Name
}

// untilWaiting returns when that many calls of Wait run.
func (e *echo) untilWaiting(n int) {
	e.t.Helper()
	within(e.t, fmt.Sprint(n, " calls that wait"), func() bool { return e.waiting() == fmt.Sprint(n) })
}

// release lets all calls of Wait end, one by one: signals that come too fast become one.
func (e *echo) release() {
	e.t.Helper()
	for n := e.waiting(); n != "0"; {
		e.signal(syscall.SIGUSR1)
		old := n
		within(e.t, "a call that ends", func() bool { n = e.waiting(); return n != old })
	}
}

// onEach runs a test over each transport.
func onEach(t *testing.T, test func(t *testing.T, e *echo)) {
	for _, tr := range transports {
		t.Run(tr.name, func(t *testing.T) {
			t.Parallel()
			test(t, startEcho(t, tr))
		})
	}
}
