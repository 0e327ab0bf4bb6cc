// SPDX-License-Identifier: Apache-2.0

// registrar stands in for node-driver-registrar beside the Go driver: it shows kubelet where the driver's socket is. Like
// that one it removes the registration socket that it finds, and ends when kubelet has refused.
//
// usage: registrar --csi-address=PATH --kubelet-registration-path=PATH
package main

import (
	"context"
	"errors"
	"flag"
	"io/fs"
	"log"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	csi "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

type server struct {
	registration.UnimplementedRegistrationServer
	name, endpoint string
}

func (s *server) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{Type: registration.CSIPlugin, Name: s.name, Endpoint: s.endpoint,
		SupportedVersions: []string{"1.0.0"}}, nil
}

func (s *server) NotifyRegistrationStatus(_ context.Context, status *registration.RegistrationStatus) (
	*registration.RegistrationStatusResponse, error) {
	log.Printf("registered: %v %s", status.PluginRegistered, status.Error)
	if !status.PluginRegistered {
		os.Exit(1)
	}
	return &registration.RegistrationStatusResponse{}, nil
}

// nameOf asks the driver, and waits for it.
func nameOf(path string) string {
	connection, err := grpc.NewClient("unix://"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	info, err := csi.NewIdentityClient(connection).GetPluginInfo(ctx, &csi.GetPluginInfoRequest{}, grpc.WaitForReady(true))
	if err != nil {
		log.Fatal(err)
	}
	return info.Name
}

func main() {
	address := flag.String("csi-address", "", "path of the driver's socket, here")
	endpoint := flag.String("kubelet-registration-path", "", "path of the driver's socket, on the host")
	flag.String("timeout", "", "has no effect")
	flag.Int("v", 0, "has no effect")
	flag.Parse()

	s := &server{name: nameOf(*address), endpoint: *endpoint}
	path := "/registration/" + s.name + "-reg.sock"
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Fatal(err)
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		log.Fatal(err)
	}
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM, syscall.SIGINT)
	g := grpc.NewServer()
	registration.RegisterRegistrationServer(g, s)
	go func() {
		<-end
		g.Stop()
	}()
	if err := g.Serve(listener); err != nil {
		log.Fatal(err)
	}
}
