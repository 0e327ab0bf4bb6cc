// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc/stats"
)

// countConnections counts those that a server of grpc-go accepts.
type countConnections struct {
	begun *atomic.Int32
}

func (countConnections) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }
func (countConnections) HandleRPC(context.Context, stats.RPCStats)                       {}
func (countConnections) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context {
	return ctx
}

func (c countConnections) HandleConn(_ context.Context, s stats.ConnStats) {
	if _, is := s.(*stats.ConnBegin); is {
		c.begun.Add(1)
	}
}
