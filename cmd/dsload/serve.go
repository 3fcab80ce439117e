package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/help"
	"github.com/dsload/dsload/internal/pack"
	"github.com/dsload/dsload/internal/resident"
	"github.com/dsload/dsload/internal/serve"
	"github.com/dsload/dsload/internal/serve/feed"
	"github.com/dsload/dsload/internal/spelling"
	"github.com/dsload/dsload/internal/textcache"
	"github.com/dsload/dsload/shard"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
)

type serveFlags struct {
	opts              serve.Options
	socket, listen    string
	tlsCert, tlsKey   string
	tokenFile         string
	cache             int64
	drain             time.Duration
	verify            bool
	asJSON, stdinLife bool
	logLevel          string
	text              *pflag.FlagSet // how arguments that are text are built
}

func newServeCommand() *cobra.Command {
	f := serveFlags{opts: serve.Defaults()}
	cmd := &cobra.Command{
		Use:   "serve DATASET...",
		Short: "Serve padded batches over a unix socket, and TCP on request",
		Long: `Serves datasets to any number of trainers as padded batches: HTTP/1.1 with Arrow IPC
bodies over a unix socket of mode 0600, and over TCP on request. A DATASET is a folder,
or NAME=FOLDER to mix several; text is served too.

A folder may be in a bucket, s3://BUCKET/PATH, gs:// or az://: the blocks that are read
are cached on this disk while the server runs, up to --cache. If the dataset is larger,
ask for shuffle=block rather than full, which makes a request for each row.

Text is files, and with any flag for text all sources of a build. It is built into the
user's cache, and again only if it changed; DSLOAD_CACHE names another folder,
DSLOAD_CACHE_LIMIT its size. The server listens once the text is built.

SIGTERM ends the server after its streams have ended or --drain is over; a second one
ends it at once. A cut stream is an error for its client. If a dataset is rebuilt while
it is served, all its streams end: start the server again.

/v1/batches are the batches, /v1/dataset is the manifest, /healthz the state, /metrics for
Prometheus, / a dashboard. Without a token, TCP answers only requests for localhost, and
none from other sites' pages.`,
		Annotations: map[string]string{help.UsualFlags: "socket listen tls-cert tls-key token-file memory pack max-length " +
			"tokenizer log-level"},
		Example: `  dsload serve data --socket /tmp/feed.sock
  dsload serve corpus.jsonl --tokenizer gpt2 --max-length 1024
  dsload serve wiki=data/wiki code=data/code          # ?mix=wiki=0.7,code=0.3
  dsload serve s3://bucket/data --cache 20GiB
  curl --unix-socket dsload.sock 'http://dsload/v1/batches?shuffle=block&bucket=4096' -o b.arrows
  dsload serve data --pack bfd --max-length 4096      # several documents per row, nothing written
  dsload serve data --listen 127.0.0.1:8080           # dashboard at http://127.0.0.1:8080/
  dsload serve data --listen :8443 --tls-cert c.pem --tls-key k.pem --token-file token`,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.opts.Datasets = args
			return runServe(cmd, &f)
		},
	}
	flags := cmd.Flags()
	f.add(flags)
	f.text = textFlags(flags)
	flags.Lookup("pack").Usage = "pack rows for requests without pack: wrapped, bfd, bfd_split or none; " +
		"for text, when it is built"
	flags.Lookup("max-length").Usage = "tokens of rows that --pack fills (default the build's); " +
		"for text, longest example"
	help.InGroup(flags, "Packing", "pack", "max-length")
	cmd.Args = servable(f.text, someArgs("at least one dataset"))
	return cmd
}

// add adds the flags of serve, without those about text.
func (f *serveFlags) add(flags *pflag.FlagSet) {
	flags.SortFlags = false
	flags.StringVarP(&f.socket, "socket", "s", "",
		"unix socket to listen on (default ./dsload.sock, or none with --listen)")
	flags.StringVar(&f.listen, "listen", "", "also listen on this HOST:PORT")
	flags.StringVar(&f.tlsCert, "tls-cert", "", "certificate chain (PEM) for --listen; TLS 1.2 at least")
	flags.StringVar(&f.tlsKey, "tls-key", "", "its private key (PEM)")
	flags.StringVar(&f.tokenFile, "token-file", "", "file with the token that requests over --listen must carry")
	flags.Var(sizeValue{&f.opts.Memory, false}, "memory", "hard cap on the whole process")
	flags.Var(sizeValue{&f.cache, false}, "cache",
		"disk space for blocks of datasets in buckets (default 4GiB, or half of what is free)")
	flags.BoolVar(&f.verify, "verify", false, "check every checksum before serving")
	flags.IntVar(&f.opts.Feed.MaxStreams, "max-streams", f.opts.Feed.MaxStreams, "maximum concurrent streams")
	flags.DurationVar(&f.opts.Feed.WriteTimeout, "write-timeout", f.opts.Feed.WriteTimeout,
		"cut a stream whose client has read nothing for this long")
	flags.DurationVar(&f.opts.Feed.IdleTimeout, "idle-timeout", f.opts.Feed.IdleTimeout,
		"close connections without a request for this long")
	flags.DurationVar(&f.drain, "drain", 10*time.Second,
		"how long running streams may continue after SIGTERM")
	flags.BoolVar(&f.stdinLife, "exit-with-stdin", false,
		"end at once when standard input ends, for programs that start their own server")
	flags.StringVar(&f.logLevel, "log-level", "warn", "debug, info, warn or error; logs go to standard error")
	flags.BoolVar(&f.asJSON, "json", false, "print the addresses as one JSON object; logs are JSON too")
	help.NameValues(flags, "FILE", "socket", "tls-cert", "tls-key", "token-file")
	help.NameValues(flags, "HOST:PORT", "listen")
	help.InGroup(flags, "Server", "socket", "listen", "verify", "drain", "exit-with-stdin", "log-level")
	help.InGroup(flags, "Security", "tls-cert", "tls-key", "token-file")
	help.InGroup(flags, help.GroupLimits, "cache", "max-streams", "write-timeout", "idle-timeout")
}

func runServe(cmd *cobra.Command, f *serveFlags) (err error) {
	ctx := cmd.Context()
	if f.stdinLife {
		var owned context.CancelFunc
		ctx, owned = context.WithCancel(ctx)
		defer endWithOwner(cmd.InOrStdin(), owned)()
		cmd.SetContext(ctx)
	}
	if f.socket == "" && f.listen == "" {
		f.socket = "dsload.sock"
	}
	if err := f.checkLimits(); err != nil {
		return err
	}
	logs := newLossyWriter(cmd.ErrOrStderr())
	defer logs.close()
	if f.opts.Feed.Log, err = newLogger(logs, f.logLevel, f.asJSON); err != nil {
		return err
	}
	tlsConfig, err := f.security(ctx, logs)
	if err != nil {
		return err
	}
	setServerLimit(f.opts.Memory)
	if err := f.takePackDefaults(); err != nil {
		return err
	}
	reader, closeAll, err := f.open(cmd, logs)
	if err != nil {
		return err
	}
	keep := false
	defer func() {
		if !keep {
			err = errors.Join(err, closeAll())
		}
	}()
	server, err := serve.NewServer(reader, f.opts)
	if err != nil {
		return err
	}
	listeners, where, err := f.listeners()
	if err != nil {
		return err
	}
	if err := where.print(cmd.OutOrStdout(), f.asJSON); err != nil {
		return errors.Join(err, listeners.close())
	}
	stuck, err := f.serve(ctx, server, listeners, tlsConfig)
	keep = stuck > 0 // closing would wait for reads that do not return; the end of the process closes everything
	return err
}

// checkLimits refuses numbers that the feed would take for its defaults, or for nothing at all.
func (f *serveFlags) checkLimits() error {
	feed := &f.opts.Feed
	switch {
	case feed.MaxStreams < 1:
		return usagef("--max-streams %d: must be at least 1", feed.MaxStreams)
	case feed.WriteTimeout <= 0:
		return usagef("--write-timeout %v: must be above 0, as in 24h", feed.WriteTimeout)
	case feed.IdleTimeout <= 0:
		return usagef("--idle-timeout %v: must be above 0, as in 24h", feed.IdleTimeout)
	case f.drain < 0:
		return usagef("--drain %v: must not be below 0", f.drain)
	}
	return nil
}

// open opens what the arguments name.
func (f *serveFlags) open(cmd *cobra.Command, logs io.Writer) (reader *serve.Reader, closeAll func() error, err error) {
	sources, flags, err := textSources(f.opts.Datasets, f.text)
	if err != nil {
		return nil, nil, err
	}
	if len(sources) > 0 {
		if err := f.opts.CheckMemory(); err != nil {
			return nil, nil, err // before the text is built
		}
		folder, err := buildText(cmd, sources, flags)
		if err != nil {
			return nil, nil, err
		}
		f.opts.Datasets = []string{folder}
	}
	closeBuckets, err := f.openBuckets(logs)
	if err != nil {
		return nil, nil, err
	}
	dirs := make([]string, len(f.opts.Datasets))
	for i, arg := range f.opts.Datasets {
		if err := missing("serve", arg); err != nil {
			return nil, nil, errors.Join(err, closeBuckets())
		}
		dirs[i] = serve.DatasetDir(arg)
	}
	release, err := textcache.HoldAll(dirs)
	if err != nil {
		return nil, nil, errors.Join(err, closeBuckets())
	}
	if f.verify {
		err = verifyAll(cmd, &f.opts)
	}
	if err == nil {
		if reader, err = serve.Open(f.opts); err != nil {
			err = adviseText(err, f.opts.Datasets)
		}
	}
	if err != nil {
		return nil, nil, errors.Join(err, release(), closeBuckets())
	}
	return reader, func() error { // in this order: a read may wait for a bucket
		return errors.Join(closeBuckets(), reader.Close(), release())
	}, nil
}

// takePackDefaults uses --pack and --max-length as defaults of requests if everything served is built
// already. Otherwise they are flags about text.
func (f *serveFlags) takePackDefaults() error {
	how, length := f.text.Lookup("pack"), f.text.Lookup("max-length")
	asksForText := slices.ContainsFunc(givenOptions(f.text), func(arg string) bool { // options of text at an address
		return !strings.HasPrefix(arg, "--pack=") && !strings.HasPrefix(arg, "--max-length=")
	})
	built := func(arg string) bool { return isServedFolder(arg) || inBucket(arg) && !asksForText }
	if !how.Changed || slices.ContainsFunc(f.opts.Datasets, func(arg string) bool { return !built(arg) }) {
		return nil
	}
	f.opts.Pack, how.Changed = pack.Policy(how.Value.String()), false
	if length.Changed {
		n, err := strconv.Atoi(length.Value.String())
		if err != nil || n < 1 {
			return usagef("--max-length %s: must be at least 1", length.Value)
		}
		f.opts.PackLength, length.Changed = n, false
	}
	return nil
}

// ownerGrace is how long a server may take to end after its owner. Reads that hang in the file
// system end with the process.
const ownerGrace = 3 * time.Second

// endWithOwner calls owned once input ends, and ends the process ownerGrace later, whatever it is
// doing then. The returned function cancels that.
func endWithOwner(input io.Reader, owned context.CancelFunc) func() {
	var over atomic.Bool
	go func() { // ends with the process: a read of standard input cannot be interrupted
		_, _ = io.Copy(io.Discard, input)
		owned()
		time.AfterFunc(ownerGrace, func() {
			if !over.Load() {
				os.Exit(exitDone) // nobody is left to report to
			}
		})
	}()
	return func() {
		over.Store(true)
		owned()
	}
}

// serve serves requests until the context ends, then drains. It returns how many streams could not
// be ended.
func (f *serveFlags) serve(ctx context.Context, server *feed.Server, listeners listenerSet,
	tlsConfig *tls.Config) (stuck int, err error) {
	setOwnGrace(ctx)
	resident.DropProgram() // what runs from here on needs less than half of it
	drain := f.drain
	if f.stdinLife {
		drain = 0 // the owner is gone, and with it its readers
	}
	group, groupCtx := errgroup.WithContext(ctx)
	if listeners.unix != nil {
		group.Go(func() error { return server.Serve(listeners.unix) })
	}
	if listeners.tcp != nil {
		group.Go(func() error {
			if tlsConfig != nil {
				return server.ServeTLS(listeners.tcp, tlsConfig)
			}
			return server.Serve(listeners.tcp)
		})
	}
	cut := 0
	group.Go(func() error {
		<-groupCtx.Done() // a signal, the owner's end, or a broken listener
		limit, cancel := context.WithTimeout(context.Background(), drain)
		defer cancel()
		cut, stuck = server.Shutdown(limit)
		return nil
	})
	if err := group.Wait(); err != nil {
		return stuck, err
	}
	if cut > 0 && !f.stdinLife {
		return stuck, fault.Kindf(fault.Interrupted,
			"shut down with %s still running; their clients can resume from their last row", plural(cut, "stream"))
	}
	return stuck, nil
}

// verifyAll verifies the datasets before serving.
func verifyAll(cmd *cobra.Command, o *serve.Options) error {
	for _, arg := range o.Datasets {
		dir := serve.DatasetDir(arg)
		damage, err := shard.Verify(cmd.Context(), o.FS, dir, nil)
		if err != nil {
			return adviseText(err, o.Datasets)
		}
		for _, d := range damage {
			if fault.KindOf(d.Err) == fault.Unreachable {
				return fmt.Errorf("verify %s: %w", dir, d.Err)
			}
		}
		if len(damage) > 0 {
			return fault.Kindf(fault.Corrupt, "verify %s: %s is damaged (%w); "+
				"'dsload verify %s' lists all damage", dir, damage[0].File, damage[0].Err, dir)
		}
	}
	return nil
}

// logLevels lists the values of --log-level.
var logLevels = []string{"debug", "info", "warn", "error"}

func newLogger(w io.Writer, level string, asJSON bool) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, usagef("--log-level %s: %s", level, spelling.OneOf(level, logLevels))
	}
	o := &slog.HandlerOptions{Level: l}
	if asJSON {
		return slog.New(slog.NewJSONHandler(w, o)), nil
	}
	return slog.New(slog.NewTextHandler(w, o)), nil
}
