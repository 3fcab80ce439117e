package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/dsload/dsload/internal/shell"
)

// security checks the flags that --listen requires, and reads certificate and token. Warnings go to
// w.
func (f *serveFlags) security(ctx context.Context, w io.Writer) (*tls.Config, error) {
	if (f.tlsCert == "") != (f.tlsKey == "") {
		return nil, usagef("--tls-cert and --tls-key: give both or none")
	}
	if f.listen == "" && (f.tlsCert != "" || f.tokenFile != "") {
		return nil, usagef("--tls-cert, --tls-key and --token-file are for --listen: who may open the socket may read; " +
			"give --listen HOST:PORT too, or leave them out")
	}
	if f.tokenFile != "" {
		data, err := readSecret(ctx, w, "--token-file", f.tokenFile)
		if err != nil {
			return nil, err
		}
		if f.opts.Feed.Token, err = parseToken(data); err != nil {
			return nil, usagef("--token-file %s: %v", f.tokenFile, err)
		}
	}
	if f.listen == "" {
		return nil, nil
	}
	host, _, err := net.SplitHostPort(f.listen)
	if err != nil {
		return nil, usagef("--listen %s: %v; write HOST:PORT", f.listen, err)
	}
	if !isLoopback(host) && (f.tlsCert == "" || f.opts.Feed.Token == "") {
		return nil, usagef("--listen %s: others can reach this address, so --tls-cert, "+
			"--tls-key and --token-file are needed; or listen on 127.0.0.1", f.listen)
	}
	if f.tlsCert == "" {
		return nil, nil
	}
	chain, _, err := readWaiting(ctx, "--tls-cert", f.tlsCert, maxChainBytes)
	if err != nil {
		return nil, err
	}
	key, err := readSecret(ctx, w, "--tls-key", f.tlsKey)
	if err != nil {
		return nil, err
	}
	certificate, err := tls.X509KeyPair(chain, key)
	if err != nil {
		return nil, fmt.Errorf("read the certificate %s and its key %s: %w", f.tlsCert, f.tlsKey, err)
	}
	return &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12,
		NextProtos: []string{"http/1.1"}}, nil
}

// maxSecretBytes limits a token or key file.
const maxSecretBytes = 64 << 10

// maxChainBytes limits a certificate chain.
const maxChainBytes = 1 << 20

// secretGrace is how long a stopping server still waits for its token.
const secretGrace = time.Second

// readSecret reads a file that only its owner should be able to read, and warns if others can. It
// may be a pipe, such as a shell's <(command).
func readSecret(ctx context.Context, w io.Writer, flag, path string) ([]byte, error) {
	data, mode, err := readWaiting(ctx, flag, path, maxSecretBytes)
	if mode.IsRegular() && mode.Perm()&0o077 != 0 {
		fmt.Fprintln(w, oneLine(fmt.Sprintf("dsload: %s %s: its mode is %04o, so other users may read it; "+
			"'chmod 600 %s' leaves it to you alone", flag, path, mode.Perm(), shell.Quote(path))))
	}
	return data, err
}

// readWaiting reads a file of at most limit bytes until the context ends. The file may be a pipe,
// such as a shell's <(command).
func readWaiting(ctx context.Context, flag, path string, limit int64) ([]byte, os.FileMode, error) {
	var data []byte
	var mode os.FileMode
	done := make(chan error, 1)
	go func() { // opening a pipe that nobody writes to blocks
		var err error
		data, mode, err = readFlagFile(flag, path, limit)
		done <- err
	}()
	select {
	case err := <-done:
		return data, mode, err
	case <-ctx.Done():
	}
	select { // a regular file is read at once
	case err := <-done:
		return data, mode, err
	case <-time.After(secretGrace):
		return nil, os.ModeIrregular, fmt.Errorf("%s %s: nothing came from it: %w", flag, path, ctx.Err())
	}
}

func readFlagFile(flag, path string, limit int64) ([]byte, os.FileMode, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, os.ModeIrregular, fmt.Errorf("%s: %w", flag, err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, os.ModeIrregular, fmt.Errorf("%s: %w", flag, err)
	}
	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return nil, info.Mode(), fmt.Errorf("%s: %w", flag, err)
	}
	if int64(len(data)) > limit {
		return nil, info.Mode(), usagef("%s %s: more than %s", flag, path, formatSize(limit))
	}
	return data, info.Mode(), nil
}

// parseToken returns the token in a file's content. It accepts only what a client can send in a
// header.
func parseToken(data []byte) (string, error) {
	token := strings.TrimSpace(string(data))
	if token == "" {
		return "", errors.New("the file is empty")
	}
	for i := range len(token) {
		switch c := token[i]; {
		case c == '\n' || c == '\r':
			return "", errors.New("the token has more than one line; write one")
		case c < ' ' || c > '~':
			return "", fmt.Errorf("byte %d of the token is %#02x; use visible ASCII characters only", i, c)
		}
	}
	return token, nil
}
