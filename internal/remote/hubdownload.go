package remote

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// NewHash returns a hash, and the sum in hexadecimal that the object's bytes must have; nil if the
// server announced none.
func (o *Object) NewHash() (h hash.Hash, want string) {
	name, want, _ := strings.Cut(o.Hash, ":")
	switch name {
	case "sha256":
		return sha256.New(), want
	case "git-sha1":
		h = sha1.New()
		fmt.Fprintf(h, "blob %d\x00", o.Size) // never fails
		return h, want
	}
	return nil, ""
}

// Download stores the wanted files of a Hub repository in the cache of huggingface_hub, in its
// layout, and returns their folder. Files that are there already are not fetched again. Without a
// network, it uses what the cache has of the revision, and a notice says so. The error is
// fs.ErrNotExist if no file is wanted.
func (s *Store) Download(ctx context.Context, address string, wanted func(path string, size int64) bool) (dir string,
	err error) {
	ctx, cancel := s.context(ctx)
	defer cancel()
	b, err := s.backend(address)
	if err != nil {
		return "", err
	}
	h, ok := b.(*hub)
	if !ok {
		return "", &Error{Kind: ErrUsage, Text: "this is not the address of a repository of the Hub",
			Hint: "write hf://OWNER/NAME"}
	}
	p, err := parseHub(address)
	if err != nil {
		return "", err
	}
	dir, err = h.download(ctx, p, wanted)
	if errors.Is(err, ErrUnreachable) && !h.settings.offline {
		offline := &hub{store: s, settings: h.settings, endpoint: h.endpoint, commits: map[string]string{}}
		offline.settings.offline = true
		if cached, cacheErr := offline.download(ctx, p, wanted); cacheErr == nil {
			s.notice("%s: %v; the copy in %s is used", address, err, h.settings.cache)
			return cached, nil
		}
	}
	return dir, err
}

func (h *hub) download(ctx context.Context, p hubPath, wanted func(string, int64) bool) (dir string, err error) {
	commit, err := h.commit(ctx, &p)
	if err != nil {
		return "", err
	}
	root := p
	root.path = ""
	var files []Object
	err = h.list(ctx, p.repository()+"/"+p.path, func(rel string, o Object) error {
		if wanted(rel, o.Size) && isLocal(rel) {
			files = append(files, o)
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	if len(files) == 0 {
		return "", fs.ErrNotExist
	}
	for i := range files {
		if err := h.cacheFile(ctx, &files[i]); err != nil {
			return "", err
		}
	}
	folder := h.settings.folder(&p)
	if revision := p.branch(); !h.settings.offline && revision != commit && isLocal(revision) {
		ref := filepath.Join(folder, "refs", filepath.FromSlash(revision))
		if old, err := os.ReadFile(ref); err != nil || string(old) != commit {
			if err = os.MkdirAll(filepath.Dir(ref), 0o777); err == nil {
				err = os.WriteFile(ref, []byte(commit), 0o666)
			}
			if err != nil {
				return "", cacheError(err)
			}
		}
	}
	return filepath.Join(folder, "snapshots", commit, filepath.FromSlash(p.path)), nil
}

func cacheError(err error) error {
	return fmt.Errorf("write to the cache of the Hub: %w; set HF_HOME to a folder that can be written to", err)
}

// cacheFile makes sure that a file is in the cache.
func (h *hub) cacheFile(ctx context.Context, o *Object) error {
	p, err := parseHub(o.URI)
	if err != nil {
		return err
	}
	folder := h.settings.folder(&p)
	link := filepath.Join(folder, "snapshots", o.Revision, filepath.FromSlash(p.path))
	if info, err := os.Stat(link); err == nil && info.Size() == o.Size {
		return nil
	}
	if h.settings.offline {
		return h.offline()
	}
	blob := o.blob()
	if blob == "" {
		return &Error{Kind: ErrUnreachable, Text: "the Hub gives no hash of " + path.Base(p.path)}
	}
	name := filepath.Join(folder, "blobs", blob)
	for _, dir := range []string{filepath.Dir(name), filepath.Dir(link),
		filepath.Join(h.settings.cache, ".locks", filepath.Base(folder))} {
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return cacheError(err)
		}
	}
	unlock, err := lockFile(ctx, filepath.Join(h.settings.cache, ".locks", filepath.Base(folder), blob+".lock"))
	if err != nil {
		return cacheError(err)
	}
	defer unlock()
	if info, err := os.Stat(name); err != nil || info.Size() != o.Size { // nobody else was faster
		if err := h.fetch(ctx, o, name); err != nil {
			return err
		}
	}
	target, err := filepath.Rel(filepath.Dir(link), name)
	if err == nil {
		os.Remove(link) // it is a broken link, if it exists
		err = os.Symlink(target, link)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		err = os.Link(name, link) // where there are no symbolic links
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return cacheError(err)
	}
	return nil
}

// fetch downloads an object to a blob. The file has a temporary name until it is complete and has
// the announced hash.
func (h *hub) fetch(ctx context.Context, o *Object, blob string) error {
	temp := blob + ".incomplete"
	out, err := os.Create(temp)
	if err != nil {
		return cacheError(err)
	}
	defer out.Close()
	sum, want := o.NewHash()
	if err := h.store.ReadRange(ctx, *o, 0, o.Size, func(p []byte) error {
		sum.Write(p) // never fails
		if _, err := out.Write(p); err != nil {
			return cacheError(err)
		}
		return nil
	}); err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != want {
		return &Error{Kind: ErrMismatch, Text: fmt.Sprintf("the hash of %s is %s, and the Hub announced %s",
			path.Base(o.URI), got, want),
			Hint: "run the same command again"}
	}
	if err := errors.Join(out.Sync(), out.Close(), os.Rename(temp, blob)); err != nil {
		return cacheError(err)
	}
	return nil
}
