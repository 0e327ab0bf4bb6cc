// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	_ "google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

func TestUnary(t *testing.T) {
	onEach(t, func(t *testing.T, e *echo) {
		request := &info{Name: "a", VendorVersion: "größer", Manifest: map[string]string{"k": "v", "l": ""}}
		for _, method := range []string{"Echo", "Work"} {
			if reply := e.call(method, request); !proto.Equal(reply, request) {
				t.Errorf("%s: %v", method, reply)
			}
		}
		reply, err := csi.NewIdentityClient(e.conn).GetPluginInfo(t.Context(), &csi.GetPluginInfoRequest{})
		if err != nil || reply.Name != "echo.pmem-csi.test" {
			t.Errorf("GetPluginInfo: %v %v", reply, err)
		}
	})
}

func TestErrors(t *testing.T) {
	texts := []string{"plain", "50% off", "100%25", "größer als 4 €", "\U0001f4be", "~!\"#$&'()"}
	onEach(t, func(t *testing.T, e *echo) {
		for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
			for _, text := range texts {
				request := &info{Name: fmt.Sprint(uint32(code)), VendorVersion: text}
				if got := e.fails(code, "Fail", request); got != text {
					t.Errorf("%v: %q became %q", code, text, got)
				}
			}
		}
		long := e.fails(codes.Aborted, "Fail", &info{Name: "10", VendorVersion: strings.Repeat("ä", 100000)})
		if long == "" || strings.Trim(long, "ä") != "" {
			t.Errorf("long text became %q", long)
		}
	})
}

func TestUnknownMethods(t *testing.T) {
	onEach(t, func(t *testing.T, e *echo) {
		if text := e.fails(codes.Unimplemented, "Nothing", &info{}); !strings.Contains(text, "Nothing") {
			t.Error(text)
		}
		_, err := csi.NewNodeClient(e.conn).NodeGetInfo(t.Context(), &csi.NodeGetInfoRequest{})
		if status.Code(err) != codes.Unimplemented {
			t.Error(err)
		}
	})
}

// Compressed requests are refused with a code by which clients fall back to none.
func TestCompression(t *testing.T) {
	onEach(t, func(t *testing.T, e *echo) {
		err := e.conn.Invoke(t.Context(), echoService+"Echo", &info{Name: "x"}, &info{}, grpc.UseCompressor("gzip"))
		if status.Code(err) != codes.Unimplemented {
			t.Error(err)
		}
		e.call("Echo", &info{})
	})
}

func TestMetadata(t *testing.T) {
	onEach(t, func(t *testing.T, e *echo) {
		with := func(bytes int) error {
			ctx := metadata.AppendToOutgoingContext(t.Context(),
				"some-bin", "\x00\xff\n", "some", strings.Repeat("x", bytes))
			_, err := call(ctx, e.conn, "Echo", &info{})
			return err
		}
		if err := with(4000); err != nil {
			t.Error(err)
		}
		if err := with(9000); err == nil {
			t.Error("more headers than the server allows")
		}
		e.call("Echo", &info{})
	})
}

// What is no unary call is an error of this call alone.
func TestStreams(t *testing.T) {
	desc := &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}
	send := func(t *testing.T, e *echo, messages int) error {
		stream, err := e.conn.NewStream(t.Context(), desc, echoService+"Echo")
		if err != nil {
			return err
		}
		for range messages {
			// A failure shows in the status as well.
			_ = stream.SendMsg(&info{Name: "x"})
		}
		if err := stream.CloseSend(); err != nil {
			return err
		}
		return stream.RecvMsg(&info{})
	}
	onEach(t, func(t *testing.T, e *echo) {
		if err := send(t, e, 1); err != nil {
			t.Error(err)
		}
		for _, n := range []int{0, 2, 3} {
			if err := send(t, e, n); status.Code(err) != codes.Internal && status.Code(err) != codes.Unimplemented {
				t.Errorf("%d messages: %v", n, err)
			}
		}
		e.call("Echo", &info{})
	})
}

func TestSizes(t *testing.T) {
	onEach(t, func(t *testing.T, e *echo) {
		// A string of that length has a head of 5 bytes.
		largest := &info{Name: strings.Repeat("x", maxMessage-5)}
		if proto.Size(largest) != maxMessage {
			t.Fatal(proto.Size(largest))
		}
		for _, method := range []string{"Echo", "Work"} {
			if reply := e.call(method, largest); !proto.Equal(reply, largest) {
				t.Errorf("%s: %d bytes", method, proto.Size(reply))
			}
			e.fails(codes.ResourceExhausted, method, &info{Name: strings.Repeat("x", maxMessage-4)})
		}
		if reply := e.call("Grow", &info{Name: "4000000"}); len(reply.VendorVersion) != 4000000 {
			t.Errorf("%d bytes", len(reply.VendorVersion))
		}
		e.fails(codes.ResourceExhausted, "Grow", &info{Name: fmt.Sprint(maxMessage)})
	})
}

// grpc-go widens its windows while large replies arrive, and sends pings to learn how far.
func TestManyLargeReplies(t *testing.T) {
	onEach(t, func(t *testing.T, e *echo) {
		for range 50 {
			if reply := e.call("Grow", &info{Name: "2000000"}); len(reply.VendorVersion) != 2000000 {
				t.Fatalf("%d bytes", len(reply.VendorVersion))
			}
		}
	})
}

func TestSmallWindows(t *testing.T) {
	onEach(t, func(t *testing.T, e *echo) {
		conn := e.dial(grpc.WithStaticStreamWindowSize(65535), grpc.WithStaticConnWindowSize(65535))
		reply, err := call(context.Background(), conn, "Grow", &info{Name: "1000000"})
		if err != nil || len(reply.VendorVersion) != 1000000 {
			t.Errorf("%d bytes, %v", len(reply.GetVendorVersion()), err)
		}
	})
}
