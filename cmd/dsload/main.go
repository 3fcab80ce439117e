// Command dsload builds tokenized datasets under a memory cap and feeds them to trainers.
package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run executes one command line and returns its exit code. An error is one line on stderr.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if err := checkByteOrder(binary.NativeEndian); err != nil {
		fmt.Fprintln(stderr, "dsload: "+err.Error())
		return exitFailed
	}
	ctx, stop := notifyContext(context.Background(), stderr)
	defer stop()

	root := newRootCommand(args...)
	root.SetArgs(args)
	root.SetIn(stdin)
	if isTerminal(stdout) {
		guard := &terminalWriter{w: stdout}
		defer guard.flush()
		stdout = guard
	}
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	if printed := new(printedError); errors.As(err, &printed) {
		return printed.code
	}
	if path, ok := errors.AsType[*fs.PathError](err); ok && errors.Is(err, syscall.EPIPE) && path.Path == os.Stdout.Name() {
		return exitDone // the reader has seen enough, as head does; SIGPIPE usually ends the process first
	}
	fmt.Fprintln(stderr, "dsload: "+errorLine(adviseSystem(err), args...))
	return exitCode(err)
}

// checkByteOrder refuses big-endian machines: shards would be right there, but batches would not.
func checkByteOrder(native binary.ByteOrder) error {
	if native.Uint16([]byte{1, 0}) != 1 {
		return fmt.Errorf("%s/%s stores numbers with their highest byte first, and batches would be wrong there; "+
			"use a little-endian machine, such as one with amd64 or arm64", runtime.GOOS, runtime.GOARCH)
	}
	return nil
}

// newRootCommand returns the command of a command line, with all subcommands that it may need.
func newRootCommand(args ...string) *cobra.Command {
	root := &cobra.Command{
		Use:   "dsload",
		Short: "Tokenize a corpus under a memory cap and feed it to trainers",
		Long: `dsload streams text through a tokenizer into Arrow shards under a hard cap on the
whole process's memory, and serves the shards to trainers as padded batches.`,
		Example: `  dsload build corpus/*.txt --out data    # your text, a document a line; --preview 3 looks first
  dsload view data                        # what is trained on, row by row
  dsload serve data                       # batches for trainers, as dsload.Loader reads them`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          noArgs,
	}
	showVersion := root.Flags().BoolP("version", "v", false, "print version, commit and platform")
	root.RunE = func(cmd *cobra.Command, _ []string) error {
		if *showVersion {
			return writeText(cmd.OutOrStdout(), versionLine())
		}
		return cmd.Help()
	}
	root.PersistentPreRunE = checkUsage
	root.SetFlagErrorFunc(flagError)
	root.SetHelpFunc(showHelp)
	addCommands(root, args)
	registerCompletions(root)
	return root
}
