package listing

import (
	"context"
	"errors"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/ingest/source/glob"
	"github.com/dsload/dsload/internal/ingest/source/scratch"
	"github.com/dsload/dsload/internal/ingest/source/synth"
	"github.com/dsload/dsload/internal/ingest/source/uris"
	"github.com/dsload/dsload/internal/remote"
)

// Check refuses an argument that cannot be read, before any other is. before are the arguments before it.
func (l *Lister) Check(arg string, before []string) error {
	scheme, rest, isURL := strings.Cut(arg, "://")
	switch {
	case arg == "":
		return fault.Of(cause.Usage, "a source is an empty string")
	case arg == "-" && l.Stdin == nil:
		return fault.Of(cause.Usage, "source -: there is no standard input")
	case arg == "-" && slices.Contains(before, "-"):
		return fault.Of(cause.Usage, "source - is given twice; it can be read only once")
	case arg == "-":
		return nil
	case isURL && scheme == "synth":
		_, err := Generated(arg)
		return err
	case isURL && uris.IsRemote(arg):
		return nil
	case isURL && scheme == "file" && !strings.HasPrefix(rest, "/"):
		return fault.Of(cause.Usage, "%s: a file address has three slashes and an absolute path", arg)
	case uris.IsAddress(arg) && scheme != "file":
		e := cause.Unread(remote.Redact(arg), &fault.Error{Class: fault.Usage, Err: cause.Unsupported,
			What: fault.Textf("addresses of kind %s:// cannot be read", scheme)})
		e.Hint = "download it and name the file"
		if strings.HasPrefix(scheme, "abfs") || strings.HasPrefix(scheme, "wasb") {
			e.Hint = "write az://CONTAINER/PATH and set AZURE_STORAGE_ACCOUNT"
		}
		return e
	}
	name := strings.TrimPrefix(arg, "file://")
	if _, err := os.Stat(name); err != nil {
		if !isGlob(name) {
			return cause.Unread(name, cause.OfPath(err))
		}
		if _, _, err := globRoot(name); err != nil {
			return fault.Of(cause.Usage, "pattern %s: %v", name, err)
		}
	}
	return nil
}

func isGlob(name string) bool { return strings.ContainsAny(name, "*?[{") }

// Generated parses the address of generated text.
func Generated(address string) (*synth.Spec, error) {
	spec, err := synth.Parse(address)
	if err != nil {
		return nil, fault.Of(cause.Usage, "source %s: %v", address, err)
	}
	return spec, nil
}

// List adds the files that an argument leads to; many is set for a folder or glob.
func (l *Lister) List(ctx context.Context, arg string) (many bool, err error) {
	switch {
	case arg == "-":
		_, err = l.Add(&File{URI: "-", Size: -1, Stream: l.Stdin})
		return false, err
	case strings.HasPrefix(arg, "synth://"):
		spec, err := Generated(arg)
		if err == nil {
			_, err = l.Add(&File{URI: arg, Size: spec.Size(), Synth: spec})
		}
		return false, err
	case remote.Listable(arg):
		return l.store(ctx, arg)
	case uris.IsRemote(arg):
		return false, l.address(ctx, arg)
	}
	name := strings.TrimPrefix(arg, "file://")
	info, err := os.Stat(name)
	isFolder := err == nil && info.IsDir()
	w := walk{ctx: ctx, root: name, filter: l.Filter, files: scratch.Sorter{Dir: l.ScratchDir},
		todo: scratch.Queue{Dir: l.ScratchDir}, built: l.Built, passed: l.Passed}
	switch {
	case isFolder && (isFile(name, savedDict) || isFile(name, savedState) && isFile(name, savedInfo)) &&
		(l.Format == "" || l.Format == "dataset" || l.Format == "chat"):
		return true, l.saved(name)
	case isFolder && snapshotOf(name) != "":
		return false, cause.Unread(name, fault.Of(cause.Usage, "this is a folder of the Hub's cache, which has each file "+
			"under several names; name the snapshot in it, %s", snapshotOf(name)))
	case l.Format == "dataset":
		return false, cause.Unread(name, fault.Of(cause.Usage,
			"this is not a folder that datasets' save_to_disk wrote: it has no %s", savedState))
	case err == nil && !isFolder:
		f := localFile(name, info)
		if !info.Mode().IsRegular() {
			if f.Stream, err = os.Open(name); err != nil {
				return false, cause.Unread(name, cause.OfPath(err))
			}
			f.Size, f.ModTime = -1, time.Time{}
		}
		_, err = l.Add(f)
		return false, err
	case err != nil && !isGlob(name):
		return false, cause.Unread(name, cause.OfPath(err))
	case err != nil:
		if w.root, w.globs, err = globRoot(name); err != nil {
			return false, fault.Of(cause.Usage, "pattern %s: %v", name, err)
		}
	}
	if l.OutDir != "" {
		w.out, _ = os.Stat(l.OutDir) // most often it is not there yet
	}
	err = errors.Join(l.walked(name, &w), w.Close())
	if w.globs != nil {
		l.patterns = append(l.patterns, name)
	}
	return true, err
}

// snapshotOf returns the latest snapshot in the folder of a repository in the Hub's cache, "" for another folder.
func snapshotOf(dir string) string {
	blobs, errBlobs := os.Stat(filepath.Join(dir, "blobs"))
	commit, err := os.ReadFile(filepath.Join(dir, "refs", "main"))
	snapshot := filepath.Join(dir, "snapshots", strings.TrimSpace(string(commit)))
	if info, errFolder := os.Stat(snapshot); errors.Join(err, errBlobs, errFolder) == nil && blobs.IsDir() && info.IsDir() {
		return snapshot
	}
	return ""
}

// GivenTwice adds notes on files that are given more than once, or that a folder or pattern holds which is given too:
// their documents come twice. So do those on files of several splits.
func (l *Lister) GivenTwice(args []string) {
	seen := map[string]bool{}
	for _, arg := range args {
		if strings.HasPrefix(arg, "file://") || !uris.IsAddress(arg) && arg != "-" && !isGlob(arg) {
			if abs, err := realPath(strings.TrimPrefix(arg, "file://")); err == nil {
				seen[abs] = true
			}
		}
	}
	patterns := slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return !isGlob(arg) || uris.IsAddress(arg) })
	again := map[string]bool{}
	files, splits := map[[2]int64]named{}, splitCounts{}
	for _, arg := range args {
		if pattern := matching(arg, patterns); pattern != "" {
			l.Note("source %s matches %s, which is given too: its documents are read twice", arg, pattern)
		}
		if !isGlob(arg) {
			splits.count(path.Base(arg))
		}
		abs, err := realPath(strings.TrimPrefix(arg, "file://"))
		if err != nil || uris.IsAddress(arg) && !strings.HasPrefix(arg, "file://") || arg == "-" {
			arg = uris.Redact(arg)
			abs = arg
		}
		if again[abs] {
			l.Note("source %s is given twice: its documents are read twice", arg)
			continue
		} else if other := otherName(abs, files); other != "" {
			l.Note("source %s is the same file as %s, which is given too: its documents are read twice", arg, other)
		}
		again[abs] = true
		for dir := filepath.Dir(abs); len(dir) > 1 && dir != "."; dir = filepath.Dir(dir) {
			if seen[dir] {
				l.Note("source %s lies in %s, which is given too: its documents are read twice", arg, dir)
				break
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	splits.note(l, "all splits for which files are named")
}

// otherName returns an earlier name of the file of this name, "" if it is new. Names of one file have its size and
// its time, and files keeps one file for each of these.
func otherName(name string, files map[[2]int64]named) string {
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() {
		return ""
	}
	key := [2]int64{info.Size(), info.ModTime().UnixNano()}
	if other, ok := files[key]; ok && os.SameFile(info, other.info) {
		return other.name
	}
	files[key] = named{name, info}
	return ""
}

type named struct {
	name string
	info os.FileInfo
}

// realPath returns the absolute path of a file, and of what links lead to.
func realPath(name string) (string, error) {
	if real, err := filepath.EvalSymlinks(name); err == nil {
		name = real
	}
	return filepath.Abs(name)
}

// matching returns the first pattern that matches a file of this machine, "" if none does.
func matching(file string, patterns []string) string {
	if isGlob(file) || uris.IsAddress(file) {
		return ""
	}
	for _, pattern := range patterns {
		root, globs, err := globRoot(pattern)
		if err != nil {
			continue // reading it tells
		}
		root, errRoot := filepath.Abs(root)
		abs, errFile := filepath.Abs(file)
		if rest, err := filepath.Rel(root, abs); err == nil && errRoot == nil && errFile == nil {
			names := strings.Split(filepath.ToSlash(rest), "/")
			if slices.ContainsFunc(globs, func(g []string) bool { return glob.MatchElements(g, names, false) }) {
				return pattern
			}
		}
	}
	return ""
}
