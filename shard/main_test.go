package shard_test

import (
	"context"
	"testing"

	"go.uber.org/goleak"

	"github.com/dsload/dsload/internal/effort"
)

var ctx = context.Background()

func TestMain(m *testing.M) {
	effort.Economize()
	goleak.VerifyTestMain(m)
}
