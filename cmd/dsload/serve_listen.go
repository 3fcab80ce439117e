package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/dsload/dsload/internal/serve/feed"
	"github.com/dsload/dsload/internal/shell"
)

func isLoopback(host string) bool { return host == "localhost" || net.ParseIP(host).IsLoopback() }

// addresses are where clients reach a server.
type addresses struct {
	Socket string `json:"socket,omitempty"`
	URL    string `json:"url,omitempty"`
	PID    int    `json:"pid"`
	token  bool
}

// listenerSet holds a server's listeners; one that is not used is nil.
type listenerSet struct{ unix, tcp net.Listener }

func (s listenerSet) close() (err error) {
	for _, l := range []net.Listener{s.unix, s.tcp} {
		if l != nil {
			err = errors.Join(err, l.Close())
		}
	}
	return err
}

func (f *serveFlags) listeners() (out listenerSet, where addresses, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, out.close())
		}
	}()
	where.PID, where.token = os.Getpid(), f.opts.Feed.Token != ""
	if f.socket != "" {
		if out.unix, err = feed.ListenUnix(f.socket); err != nil {
			if errors.Is(err, feed.ErrInUse) {
				err = fmt.Errorf("%w; read from it, or give another --socket", err)
			}
			return out, where, err
		}
		if where.Socket, err = filepath.Abs(f.socket); err != nil {
			return out, where, err
		}
	}
	if f.listen != "" {
		if out.tcp, err = feed.ListenTCP(f.listen); err != nil {
			return out, where, fmt.Errorf("%w; give another HOST:PORT; port 0 is any that is free", err)
		}
		scheme := "http"
		if f.tlsCert != "" {
			scheme = "https"
		}
		where.URL = scheme + "://" + out.tcp.Addr().String()
	}
	return out, where, nil
}

// print writes lines to paste for a first client.
func (a addresses) print(w io.Writer, asJSON bool) error {
	var b strings.Builder
	if a.Socket != "" {
		fmt.Fprintf(&b, "serving on %s\n\n", a.Socket)
		fmt.Fprintf(&b, "  curl --unix-socket %s http://dsload/v1/dataset\n", shell.Quote(a.Socket))
		fmt.Fprintf(&b, "  curl --unix-socket %s 'http://dsload/v1/batches?batch_size=32' -o batches.arrows\n\n",
			shell.Quote(a.Socket))
		fmt.Fprintf(&b, `  import http.client, socket, pyarrow
  c = http.client.HTTPConnection("dsload"); c.sock = socket.socket(socket.AF_UNIX); c.sock.connect(%q)
  c.request("GET", "/v1/batches?batch_size=32&seed=0")
  for batch in pyarrow.ipc.open_stream(c.getresponse()): print(batch.num_rows, batch.schema.names)

  import dsload
  for batch in dsload.Loader(socket=%q, batch_size=32): print(batch["input_ids"].shape)

`, a.Socket, a.Socket)
	}
	if a.URL != "" {
		token := ""
		if a.token {
			token = ` -H "Authorization: Bearer $TOKEN"`
		}
		fmt.Fprintf(&b, "serving on %s (dashboard: open it in a browser)\n\n"+
			"  curl%s '%s/v1/batches?batch_size=32' -o batches.arrows\n\n", a.URL, token, a.URL)
	}
	return printResult(w, asJSON, a, b.String())
}
