// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// driver is a running pmem-csi-driver with fake devices.
type driver struct {
	pid    int
	socket string
	port   string // where its controller service has mutual TLS
}

// startDriver starts one; flags that are given again count.
func startDriver(t *testing.T, flags ...string) *driver {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("needs root, for loop devices")
	}
	dir := folder(t)
	d := &driver{socket: "unix://" + dir + "/s", port: freePort(t)}
	args := append(certificate(t, clientName).flags(),
		"-mode=node", "-nodeid=n1", "-endpoint="+d.socket, "-controllerEndpoint=tcp://127.0.0.1:"+d.port,
		"-statePath="+dir+"/state", "-deviceManager=fake", "-fakePath="+dir+"/fake", "-fakeRegionSize=1Gi")
	cmd := exec.Command(program(t, "bin/pmem-csi-driver"), append(args, flags...)...)
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	d.pid = cmd.Process.Pid
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			text, _ := os.ReadFile(log.Name())
			t.Errorf("driver: %v\n%s", err, text)
		}
	})
	for _, flag := range flags {
		if address, is := strings.CutPrefix(flag, "-endpoint=tcp://"); is {
			d.socket = "passthrough:///" + address
		}
	}
	identity := csi.NewIdentityClient(d.dial(t))
	within(t, "the driver to be ready", func() bool {
		reply, err := identity.Probe(t.Context(), &csi.ProbeRequest{}, grpc.WaitForReady(true))
		return err == nil && reply.Ready.GetValue()
	})
	return d
}

// freePort is a TCP port on which no program listens.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func (d *driver) dial(t *testing.T) *grpc.ClientConn {
	t.Helper()
	return dial(t, d.socket, insecure.NewCredentials())
}

// dialTLS connects as the owner of one of the certificates.
func (d *driver) dialTLS(t *testing.T, as string) *grpc.ClientConn {
	t.Helper()
	config := certificate(t, as).config(t)
	config.ServerName = clientName
	return dial(t, "passthrough:///127.0.0.1:"+d.port, credentials.NewTLS(config))
}

func TestDriverIdentity(t *testing.T) {
	identity := csi.NewIdentityClient(startDriver(t).dial(t))
	info, err := identity.GetPluginInfo(t.Context(), &csi.GetPluginInfoRequest{})
	if err != nil || info.Name != "pmem-csi.intel.com" || info.VendorVersion == "" {
		t.Error(info, err)
	}
	if probe, err := identity.Probe(t.Context(), &csi.ProbeRequest{}); err != nil || !probe.Ready.GetValue() {
		t.Error(probe, err)
	}
	capabilities, err := identity.GetPluginCapabilities(t.Context(), &csi.GetPluginCapabilitiesRequest{})
	if err != nil || len(capabilities.Capabilities) == 0 {
		t.Error(capabilities, err)
	}
}

// volumeLife makes a volume, finds it in each way and deletes it.
func volumeLife(t *testing.T, conn *grpc.ClientConn, name string) {
	t.Helper()
	controller := csi.NewControllerClient(conn)
	capabilities := []*csi.VolumeCapability{{
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{FsType: "ext4"}},
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
	}}
	request := &csi.CreateVolumeRequest{
		Name:               name,
		CapacityRange:      &csi.CapacityRange{RequiredBytes: 16 << 20},
		VolumeCapabilities: capabilities,
	}
	created, err := controller.CreateVolume(t.Context(), request)
	if err != nil || created.Volume.CapacityBytes < 16<<20 {
		t.Fatal(created, err)
	}
	id := created.Volume.VolumeId
	if again, err := controller.CreateVolume(t.Context(), request); err != nil || again.Volume.VolumeId != id {
		t.Error(again, err)
	}
	request.CapacityRange.RequiredBytes = 64 << 20
	if _, err := controller.CreateVolume(t.Context(), request); status.Code(err) != codes.AlreadyExists {
		t.Error(err)
	}
	valid, err := controller.ValidateVolumeCapabilities(t.Context(),
		&csi.ValidateVolumeCapabilitiesRequest{VolumeId: id, VolumeCapabilities: capabilities})
	if err != nil || valid.Confirmed == nil {
		t.Error(valid, err)
	}
	list, err := controller.ListVolumes(t.Context(), &csi.ListVolumesRequest{})
	found := false
	for _, entry := range list.GetEntries() {
		found = found || entry.Volume.VolumeId == id
	}
	if err != nil || !found {
		t.Error(list, err)
	}
	for range 2 {
		if _, err := controller.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: id}); err != nil {
			t.Error(err)
		}
	}
}

func TestDriverVolumes(t *testing.T) {
	d := startDriver(t)
	volumeLife(t, d.dial(t), "over-unix")
	volumeLife(t, d.dialTLS(t, serverName), "over-mtls")
}

func TestDriverErrors(t *testing.T) {
	d := startDriver(t)
	conn := d.dial(t)
	for code, err := range map[codes.Code]func() error{
		codes.InvalidArgument: func() error {
			_, err := csi.NewControllerClient(conn).CreateVolume(t.Context(), &csi.CreateVolumeRequest{})
			return err
		},
		codes.NotFound: func() error {
			_, err := csi.NewNodeClient(conn).NodeStageVolume(t.Context(), &csi.NodeStageVolumeRequest{
				VolumeId: "no-such-volume", StagingTargetPath: folder(t),
				VolumeCapability: &csi.VolumeCapability{
					AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
					AccessMode: &csi.VolumeCapability_AccessMode{
						Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER}}})
			return err
		},
		codes.ResourceExhausted: func() error {
			_, err := csi.NewControllerClient(conn).CreateVolume(t.Context(), &csi.CreateVolumeRequest{
				Name: "x", CapacityRange: &csi.CapacityRange{RequiredBytes: 1 << 40},
				VolumeCapabilities: []*csi.VolumeCapability{{
					AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
					AccessMode: &csi.VolumeCapability_AccessMode{
						Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER}}}})
			return err
		},
		codes.Unimplemented: func() error {
			_, err := csi.NewControllerClient(conn).ControllerPublishVolume(t.Context(), &csi.ControllerPublishVolumeRequest{})
			return err
		},
	} {
		if got := err(); status.Code(got) != code || status.Convert(got).Message() == "" {
			t.Errorf("%v, expected %v", got, code)
		}
	}
}

// The port of the controller service accepts only the controller, and only TLS.
func TestDriverStrangers(t *testing.T) {
	d := startDriver(t)
	for name, conn := range map[string]*grpc.ClientConn{
		"name of a node": d.dialTLS(t, clientName),
		"no TLS":         dial(t, "passthrough:///127.0.0.1:"+d.port, insecure.NewCredentials()),
	} {
		_, err := csi.NewIdentityClient(conn).Probe(t.Context(), &csi.ProbeRequest{})
		if status.Code(err) != codes.Unavailable {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := csi.NewNodeClient(d.dialTLS(t, serverName)).NodeGetInfo(t.Context(), &csi.NodeGetInfoRequest{})
	if status.Code(err) != codes.Unimplemented {
		t.Error("the controller reaches the node service:", err)
	}
}

// As kubelet does it: a connection for each call, several at once.
func TestDriverManyConnections(t *testing.T) {
	d := startDriver(t)
	flat(t, d.pid, 10000, func(connections int) {
		churn(t, connections,
			func() (*grpc.ClientConn, error) {
				return grpc.NewClient(d.socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
			},
			func(ctx context.Context, conn *grpc.ClientConn) error {
				_, err := csi.NewNodeClient(conn).NodeGetCapabilities(ctx, &csi.NodeGetCapabilitiesRequest{})
				return err
			})
	})
}

// Errors of values that no message should hold reach the client as one line of text.
func TestDriverOddNames(t *testing.T) {
	conn := startDriver(t).dial(t)
	for _, id := range []string{"../../etc", "größer", "a\nb", strings.Repeat("x", 5000)} {
		_, err := csi.NewControllerClient(conn).ControllerGetVolume(t.Context(),
			&csi.ControllerGetVolumeRequest{VolumeId: id})
		if text := status.Convert(err).Message(); err == nil || strings.ContainsAny(text, "\n\r\x00") {
			t.Errorf("%q: %v", id, err)
		}
	}
	if _, err := csi.NewIdentityClient(conn).Probe(t.Context(), &csi.ProbeRequest{}); err != nil {
		t.Error(err)
	}
}
