package remote

import (
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/dsload/dsload/internal/lazy"
)

// The cache of the package huggingface_hub, which other tools fill:
//
//	HF_HUB_CACHE/datasets--OWNER--NAME/refs/REVISION           the commit
//	HF_HUB_CACHE/datasets--OWNER--NAME/blobs/ETAG              the content
//	HF_HUB_CACHE/datasets--OWNER--NAME/snapshots/COMMIT/PATH   a link to the blob
//
// Files that are there are read from there. Datasets are not written to the cache: they are
// streamed, so a build takes no more disk than its output. Tokenizers are written to it; see
// Download.

// hubSettings are the environment variables that huggingface_hub reads, too.
type hubSettings struct {
	endpoint string
	token    string
	cache    string // the folder of HF_HUB_CACHE
	offline  bool
}

func hubFromEnvironment() hubSettings {
	user, _ := os.UserHomeDir() // without one there is no cache
	base := cmp.Or(os.Getenv("XDG_CACHE_HOME"), filepath.Join(user, ".cache"))
	home := cmp.Or(os.Getenv("HF_HOME"), filepath.Join(base, "huggingface"))
	s := hubSettings{
		endpoint: strings.TrimRight(cmp.Or(os.Getenv("HF_ENDPOINT"), "https://huggingface.co"), "/"),
		cache:    cmp.Or(os.Getenv("HF_HUB_CACHE"), os.Getenv("HUGGINGFACE_HUB_CACHE"), filepath.Join(home, "hub")),
		offline:  isSet("HF_HUB_OFFLINE") || isSet("TRANSFORMERS_OFFLINE"),
		token:    strings.TrimSpace(cmp.Or(os.Getenv("HF_TOKEN"), os.Getenv("HUGGING_FACE_HUB_TOKEN"))),
	}
	if s.token == "" && !isSet("HF_HUB_DISABLE_IMPLICIT_TOKEN") {
		data, err := os.ReadFile(cmp.Or(os.Getenv("HF_TOKEN_PATH"), filepath.Join(home, "token")))
		if err == nil && len(data) < 4096 { // usually there is none
			s.token = strings.TrimSpace(string(data))
		}
	}
	if strings.ContainsAny(s.token, "\r\n\x00 ") {
		s.token = "" // a header cannot contain it
	}
	return s
}

// isSet reports whether an environment variable is true, as huggingface_hub reads it.
func isSet(name string) bool {
	switch strings.ToUpper(os.Getenv(name)) {
	case "1", "ON", "YES", "TRUE":
		return true
	}
	return false
}

// folder returns the cache's folder for a repository.
func (s *hubSettings) folder(p *hubPath) string {
	return filepath.Join(s.cache, p.kind+"--"+strings.ReplaceAll(p.repo, "/", "--"))
}

var blobName = lazy.Regexp(`^(?:[0-9a-f]{40}|[0-9a-f]{64})$`)

// blob returns the name of an object's content in the cache, or "" if it has none.
func (o *Object) blob() string {
	if name := strings.Trim(o.ETag, `"`); blobName().MatchString(name) {
		return name
	}
	return ""
}

// isLocal reports whether a path, as a server or a user gives it, stays below its folder.
func isLocal(path string) bool { return filepath.IsLocal(filepath.FromSlash(path)) }

// cachedFile opens an object in the cache.
func (s *hubSettings) cachedFile(p *hubPath, o *Object) (*os.File, error) {
	names := []string{filepath.Join("snapshots", o.Revision, filepath.FromSlash(p.path))}
	if blob := o.blob(); blob != "" {
		names = append([]string{filepath.Join("blobs", blob)}, names...)
	}
	for _, name := range names {
		if !filepath.IsLocal(name) || !isCommit(o.Revision) {
			continue
		}
		f, err := os.Open(filepath.Join(s.folder(p), name))
		if err != nil {
			continue
		}
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() && (o.Size < 0 || info.Size() == o.Size) {
			return f, nil
		}
		f.Close()
	}
	return nil, fs.ErrNotExist
}

// cachedBody returns the content of an object from an offset on, if the cache has it.
func (s *hubSettings) cachedBody(p *hubPath, o *Object, from int64) (*body, bool) {
	f, err := s.cachedFile(p, o)
	if err != nil {
		return nil, false
	}
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		f.Close()
		return nil, false
	}
	return &body{ReadCloser: f, from: from, object: *o}, true
}

// cachedCommit returns the commit that a revision named when it was last downloaded.
func (s *hubSettings) cachedCommit(p *hubPath) (string, error) {
	revision := p.branch()
	missing := &Error{Kind: ErrUnreachable, Text: fmt.Sprintf("the revision %s of %s is not in the cache %s, "+
		"and HF_HUB_OFFLINE is set", revision, p.repo, s.cache),
		Hint: "unset HF_HUB_OFFLINE, or download it first"}
	if !isLocal(revision) {
		return "", missing
	}
	data, err := os.ReadFile(filepath.Join(s.folder(p), "refs", filepath.FromSlash(revision)))
	if commit := strings.TrimSpace(string(data)); err == nil && isCommit(commit) {
		return commit, nil
	}
	return "", missing
}

// cachedObject describes a file of the cache.
func (s *hubSettings) cachedObject(p *hubPath, commit string) (Object, error) {
	if !isLocal(p.path) || !isCommit(commit) {
		return Object{}, fs.ErrNotExist
	}
	name := filepath.Join(s.folder(p), "snapshots", commit, filepath.FromSlash(p.path))
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() {
		return Object{}, fs.ErrNotExist
	}
	o := Object{URI: p.repository() + "/" + p.path, Size: info.Size(), Revision: commit}
	if to, err := os.Readlink(name); err == nil && blobName().MatchString(filepath.Base(to)) {
		blob := filepath.Base(to)
		o.ETag, o.Hash = `"`+blob+`"`, "git-sha1:"+blob
		if len(blob) == 64 {
			o.Hash = "sha256:" + blob
		}
	}
	return o, nil
}

// cachedList calls add with the files of a snapshot below a folder.
func (s *hubSettings) cachedList(p *hubPath, commit string, add func(string, Object) error) error {
	if p.path != "" && !isLocal(p.path) {
		return fs.ErrNotExist
	}
	root := filepath.Join(s.folder(p), "snapshots", commit, filepath.FromSlash(p.path))
	return filepath.WalkDir(root, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		file := *p
		if file.path = rel; p.path != "" {
			file.path = p.path + "/" + rel
		}
		o, err := s.cachedObject(&file, commit)
		if err != nil {
			return err
		}
		return add(rel, o)
	})
}
