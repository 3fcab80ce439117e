package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/remote"
)

// check refuses an argument that cannot be read, before any other is.
func (s *Set) check(i int, arg string) error {
	scheme, rest, isURL := strings.Cut(arg, "://")
	switch {
	case arg == "":
		return fault.Of(cause.Usage, "a source is an empty string")
	case arg == "-" && s.opts.Stdin == nil:
		return fault.Of(cause.Usage, "source -: there is no standard input")
	case arg == "-" && slices.Contains(s.opts.Args[:i], "-"):
		return fault.Of(cause.Usage, "source - is given twice; it can be read only once")
	case arg == "-":
		return nil
	case isURL && scheme == "synth":
		_, err := parseGenerated(arg)
		return err
	case isURL && IsRemote(arg):
		return nil
	case isURL && scheme == "file" && !strings.HasPrefix(rest, "/"):
		return fault.Of(cause.Usage, "%s: a file address has three slashes and an absolute path", arg)
	case isAddress(arg) && scheme != "file":
		e := unread(remote.Redact(arg), &fault.Error{Class: fault.Usage, Err: cause.Unsupported,
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
			return unread(name, pathCause(err))
		}
		if _, _, err := globRoot(name); err != nil {
			return fault.Of(cause.Usage, "pattern %s: %v", name, err)
		}
	}
	return nil
}

func isGlob(name string) bool { return strings.ContainsAny(name, "*?[{") }

// expand adds the inputs of one argument; many is set for a folder or glob.
func (s *Set) expand(ctx context.Context, arg string, look []byte) (many, hasText bool, err error) {
	if arg == "-" {
		hasText, err = s.add(Input{URI: "-", Size: -1, once: newOnce(s.opts.Stdin), textBytes: -1}, look)
		return false, hasText, err
	}
	if strings.HasPrefix(arg, "synth://") {
		spec, err := parseGenerated(arg)
		if err != nil {
			return false, false, err
		}
		hasText, err = s.add(Input{URI: arg, Format: formatOf(spec.Kind), Size: spec.Size(), synth: spec,
			textBytes: spec.TextBytes()}, look)
		return false, hasText, err
	}
	if IsRemote(arg) {
		return s.expandRemote(ctx, arg, look)
	}
	name := strings.TrimPrefix(arg, "file://")
	info, err := os.Stat(name)
	w := walk{ctx: ctx, root: name, filter: &s.filter, files: sorter{dir: s.opts.ScratchDir},
		todo: queue{dir: s.opts.ScratchDir}, built: s.opts.Built, format: s.opts.Format}
	switch {
	case s.opts.Format == Dataset && (err != nil || !info.IsDir() || !isDataset(name)):
		return false, false, unread(name, fault.Of(cause.Usage,
			"this is not a folder that datasets' save_to_disk wrote: it has no %s", datasetState))
	case err == nil && info.IsDir() && isDataset(name) && (s.opts.Format == Auto || s.opts.Format == Dataset ||
		s.opts.Format == Chat):
		hasText, err = s.expandDataset(name, look)
		return true, hasText, err
	case err == nil && !info.IsDir():
		hasText, err = s.addFile(name, info, look)
		return false, hasText, err
	case err != nil && !isGlob(name):
		return false, false, unread(name, pathCause(err))
	case err != nil:
		if w.root, w.globs, err = globRoot(name); err != nil {
			return false, false, fault.Of(cause.Usage, "pattern %s: %v", name, err)
		}
	}
	if s.opts.OutDir != "" {
		w.out, _ = os.Stat(s.opts.OutDir) // most often it is not there yet
	}
	hasText, err = s.addListed(name, &w, look)
	return true, hasText, errors.Join(err, w.Close())
}

// add looks at an input and appends it.
func (s *Set) add(in Input, look []byte) (hasText bool, err error) {
	if s.prunes(in.URI) {
		return false, nil
	}
	hasText, _, err = in.detect(&s.opts, look)
	if err != nil {
		return false, err
	}
	s.keep(&in, look)
	return hasText, s.append(in)
}

func (s *Set) append(in Input) error {
	if in.textBytes >= 0 {
		s.textBytes += in.textBytes
	} else {
		s.unknown = true
	}
	s.formats[in.Format]++
	s.noteRecords(&in)
	if s.opts.Conditions != nil {
		s.schema.add(&s.opts, &in)
		in.columns = nil
	}
	if in.Size < 0 || s.total < 0 {
		s.total = -1
	} else {
		s.total += in.Size
	}
	n := &s.needs
	if in.synth != nil {
		n.generated = true
	} else {
		n.remote = n.remote || in.store != nil
		n.once = n.once || in.once != nil
		n.largest = max(n.largest, s.opts.windowBytes(in.framed()))
		n.decompressor = max(n.decompressor, in.readerBytes(&s.opts))
		if n.window < in.window && (!in.Format.isColumnar() || in.why != "") {
			n.window, n.why = in.window, in.why
			if in.why != "" {
				n.why = fmt.Sprintf("%s: %s", in.URI, in.why)
			}
		}
	}
	return s.list.add(in)
}

func fileInput(name string, info fs.FileInfo) Input {
	return Input{URI: fileURI(name), path: name, Size: info.Size(), ModTime: info.ModTime().UTC()}
}

func (s *Set) addFile(name string, info fs.FileInfo, look []byte) (hasText bool, err error) {
	in := fileInput(name, info)
	if !info.Mode().IsRegular() {
		file, err := os.Open(name)
		if err != nil {
			return false, unread(name, pathCause(err))
		}
		in.Size, in.ModTime, in.once, in.textBytes = -1, time.Time{}, newOnce(file), -1
	}
	return s.add(in, look)
}

// addListed adds the files that a walk finds, in order. What is found to hold no text is
// skipped.
func (s *Set) addListed(arg string, w *walk, look []byte) (hasText bool, err error) {
	if err := w.run(); err != nil {
		if w.globs != nil && errors.Is(err, fs.ErrNotExist) && w.files.count == 0 {
			return false, unread(arg, errNoMatch)
		}
		return false, err
	}
	added := 0
	err = w.files.each(func(key []byte) error {
		if added%256 == 0 && w.ctx.Err() != nil {
			return w.ctx.Err()
		}
		name := w.path(string(key))
		info, err := os.Stat(name)
		if err != nil {
			return unread(name, pathCause(err))
		}
		in := fileInput(name, info)
		if s.prunes(name) {
			w.skipped.add(otherFolder, name)
			return nil
		}
		if has, err := s.has(in, look); err != nil {
			return err
		} else if has {
			w.skipped.add(knownFile, filepath.Base(name))
			return nil
		}
		text, what, err := in.detect(&s.opts, look)
		if what != readable {
			w.skipped.add(what, filepath.Base(name))
			return nil
		}
		if err != nil {
			return err
		}
		added++
		hasText = hasText || text
		s.keep(&in, look)
		return s.append(in)
	})
	if err != nil {
		return false, err
	}
	if added == 0 && w.skipped.counts[knownFile]+w.skipped.counts[otherFolder] == 0 {
		return false, w.nothing(arg)
	}
	s.noteSkipped(arg, &w.skipped)
	return hasText, nil
}

// noteSkipped reports what was skipped in a folder or a glob.
func (s *Set) noteSkipped(arg string, skipped *skippedFiles) {
	if text := skipped.text(false); text != "" {
		s.note("%s: skipped %s; name a file explicitly to read it", arg, text)
	}
}

// errNothingToRead is the cause where a folder or glob gives no file: there are no documents, and
// the argument is likely a mistake.
var errNothingToRead = errors.Join(cause.Usage, cause.NoDocuments)

var errNoMatch = fault.Of(fs.ErrNotExist, "no file matches the pattern")

// nothing is the error of a walk that found no file to read.
func (w *walk) nothing(arg string) error {
	skipped := w.skipped.text(true)
	switch {
	case skipped != "":
		e := unread(arg, fault.Of(errNothingToRead, "no file to read: skipped %s", skipped))
		e.Hint = "pass text files"
		if w.format != Auto {
			e.Hint = fmt.Sprintf("pass %s files, or let their format be found", w.format)
		}
		return e
	case w.globs != nil:
		return unread(arg, errNoMatch)
	}
	return unread(arg, fault.Of(errNothingToRead, "the folder holds no files to read"))
}

// maxNotes bounds the notes about a call with many arguments.
const maxNotes = 50

func (s *Set) note(format string, args ...any) {
	if len(s.notes) < maxNotes {
		s.notes = append(s.notes, fault.Textf(format, args...))
	}
}

// givenTwice reports files that are given more than once, or lie in a folder that is given too:
// their documents come twice.
func givenTwice(args []string) []fault.Text {
	seen := map[string]bool{}
	for _, arg := range args {
		if strings.HasPrefix(arg, "file://") || !isAddress(arg) && arg != "-" && !isGlob(arg) {
			if abs, err := filepath.Abs(strings.TrimPrefix(arg, "file://")); err == nil {
				seen[abs] = true
			}
		}
	}
	var out []fault.Text
	note := func(format string, args ...any) {
		if len(out) < maxNotes {
			out = append(out, fault.Textf(format, args...))
		}
	}
	again := map[string]bool{}
	for _, arg := range args {
		abs, err := filepath.Abs(strings.TrimPrefix(arg, "file://"))
		if err != nil || isAddress(arg) && !strings.HasPrefix(arg, "file://") || arg == "-" {
			arg = Redact(arg)
			abs = arg
		}
		if again[abs] {
			note("source %s is given twice: its documents are read twice", arg)
			continue
		}
		again[abs] = true
		for dir := filepath.Dir(abs); len(dir) > 1 && dir != "."; dir = filepath.Dir(dir) {
			if seen[dir] {
				note("source %s lies in %s, which is given too: its documents are read twice", arg, dir)
				break
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return out
}
