package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/serve/feed"
	"github.com/spf13/cobra"
)

// healthTimeout is how long a server may take to answer.
const healthTimeout = 3 * time.Second

func newHealthCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "health SOCKET or URL",
		Short: "Report whether a server answers, for health checks of containers",
		Long: `Asks a server for its state and prints it. Exits with 0 if the server takes requests, and
with 6 if it does not answer, has stopped taking them or cannot be reached.`,
		Example: "  dsload health dsload.sock\n  dsload health http://127.0.0.1:8080",
		Args:    oneArg("one socket or URL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), healthTimeout)
			defer cancel()
			state, err := askHealth(ctx, args[0])
			if err != nil {
				return fault.Kindf(fault.Unreachable, "health %s: %w", args[0], err)
			}
			return writeText(cmd.OutOrStdout(), oneLine(state)+"\n")
		},
	}
}

// maxHealthBytes limits how much of an answer is read.
const maxHealthBytes = 4 << 10

func askHealth(ctx context.Context, where string) (string, error) {
	url, client := where, &http.Client{}
	if !strings.Contains(where, "://") {
		url = "http://dsload"
		client.Transport = feed.Transport(where)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(url, "/")+"/healthz", nil)
	if err != nil {
		return "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxHealthBytes))
	if err != nil {
		return "", err
	}
	state := strings.TrimSpace(string(body))
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("the server answers %s: %s", resp.Status, state)
	}
	return state, nil
}
