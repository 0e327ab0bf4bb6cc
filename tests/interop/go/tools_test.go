// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// tool is a program of another project; PMEM_TOOLS names the folder.
func tool(t *testing.T, name string) string {
	t.Helper()
	tools := os.Getenv("PMEM_TOOLS")
	if tools == "" {
		t.Fatal("PMEM_TOOLS must name a folder with grpcurl and h2spec")
	}
	return filepath.Join(tools, name)
}

var h2specResult = regexp.MustCompile(`(\d+) tests, (\d+) passed, (\d+) skipped, (\d+) failed`)

// h2spec runs all sections of the conformance suite; it skips what a server without bodies in its replies cannot show.
func h2spec(t *testing.T, port string, more ...string) {
	const atLeast = 145
	args := append([]string{"-h", "127.0.0.1", "-p", port, "-o", "20"}, more...)
	out, err := exec.Command(tool(t, "h2spec"), args...).CombinedOutput()
	numbers := h2specResult.FindStringSubmatch(string(out))
	if numbers == nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Log(numbers[0])
	passed, _ := strconv.Atoi(numbers[2])
	if err != nil || passed < atLeast || numbers[1] != numbers[2] {
		_, failures, _ := strings.Cut(string(out), "Failures:")
		t.Errorf("%v, %s", err, failures)
	}
}

// tunnel is a port that leads through mutual TLS to another one: h2spec has no certificate to show.
func tunnel(t *testing.T, port string) string {
	t.Helper()
	config := certificate(t, serverName).config(t)
	config.ServerName = clientName
	config.NextProtos = []string{"h2"}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			go carry(t, near, port, config)
		}
	}()
	_, own, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return own
}

// carry copies both ways until both ends have closed. What h2spec still sends after the last frame of the server is read and
// dropped: a socket that is closed with unread bytes resets the connection, and h2spec would lose that frame.
func carry(t *testing.T, near net.Conn, port string, config *tls.Config) {
	defer near.Close()
	far, err := tls.Dial("tcp", "127.0.0.1:"+port, config)
	if err != nil {
		t.Error(err)
		return
	}
	defer far.Close()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_, _ = io.Copy(far, near)
		_ = far.CloseWrite()
		_, _ = io.Copy(io.Discard, near)
	}()
	_, _ = io.Copy(near, far)
	_ = near.(*net.TCPConn).CloseWrite()
	<-sent
}

func TestH2spec(t *testing.T) {
	plain := freePort(t)
	startDriver(t, "-endpoint=tcp://127.0.0.1:"+plain, "-caFile=", "-certFile=", "-keyFile=", "-insecure")
	id := certificate(t, serverName)
	server := start(t, program(t, "tests/interop/echo_server"),
		"-certFile="+id.cert, "-keyFile="+id.key, "tcp://127.0.0.1:0")
	mutual := tunnel(t, startDriver(t).port)
	for name, args := range map[string][]string{
		"driver, TCP":         {plain},
		"driver, TCP, strict": {plain, "-S"},
		"server, TLS, strict": {server.words[1], "-t", "-k", "-S"},
		"driver, mTLS":        {mutual, "-S"},
	} {
		t.Run(name, func(t *testing.T) { h2spec(t, args[0], args[1:]...) })
	}
}

// grpcurl returns what it prints.
func (d *driver) grpcurl(t *testing.T, args ...string) (string, error) {
	t.Helper()
	all := append([]string{"-plaintext", "-protoset", program(t, "proto/pmem-csi.protoset")}, args...)
	out, err := exec.Command(tool(t, "grpcurl"), all...).CombinedOutput()
	return string(out), err
}

func TestGrpcurl(t *testing.T) {
	d := startDriver(t)
	prints := func(want string, args ...string) string {
		t.Helper()
		out, err := d.grpcurl(t, args...)
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("grpcurl %v: %v\n%s", args, err, out)
		}
		return out
	}
	prints("csi.v1.Identity\n", "list")
	prints("registry.v0.Registry\n", "list")
	prints("csi.v1.Controller.CreateVolume\n", "list", "csi.v1.Controller")
	prints("map<string, string> volume_context", "describe", "csi.v1.Volume")
	prints("google.protobuf.BoolValue ready", "describe", "csi.v1.ProbeResponse")
	prints(`"ready": true`, d.socket, "csi.v1.Identity/Probe")

	request := `{"name": "by-hand", "capacity_range": {"required_bytes": "16777216"}, "volume_capabilities":
		[{"mount": {"fs_type": "xfs"}, "access_mode": {"mode": "SINGLE_NODE_WRITER"}}]}`
	created := prints(`"capacityBytes"`, "-d", request, d.socket, "csi.v1.Controller/CreateVolume")
	var reply struct{ Volume struct{ VolumeID string } }
	if err := json.Unmarshal([]byte(created), &reply); err != nil || reply.Volume.VolumeID == "" {
		t.Error(created, err)
	}
	prints("{}", "-d", `{"volume_id": "`+reply.Volume.VolumeID+`"}`, d.socket, "csi.v1.Controller/DeleteVolume")

	out, err := d.grpcurl(t, "-d", `{}`, d.socket, "csi.v1.Controller/CreateVolume")
	if err == nil || !strings.Contains(out, "Code: InvalidArgument") || !strings.Contains(out, "Message: ") {
		t.Errorf("%v\n%s", err, out)
	}
	// The server offers no reflection, which is no reason to fail.
	out, err = d.grpcurl(t, "-use-reflection=true", d.socket, "csi.v1.Identity/Probe")
	if err != nil || !strings.Contains(out, `"ready": true`) {
		t.Errorf("%v\n%s", err, out)
	}
}
