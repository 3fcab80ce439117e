package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"strings"

	"github.com/dsload/dsload/internal/lazy"
)

// hubEntry is a file or folder of a repository.
type hubEntry struct {
	Type string `json:"type"` // "file" or "directory"
	OID  string `json:"oid"`  // git's
	Size int64  `json:"size"`
	Path string `json:"path"`
	LFS  *struct {
		OID  string `json:"oid"` // SHA-256 of the content
		Size int64  `json:"size"`
	} `json:"lfs"`
}

func (e *hubEntry) object(p *hubPath, commit string) Object {
	o := Object{URI: p.repository() + "/" + e.Path, Size: e.Size, Revision: commit}
	if e.LFS != nil {
		o.Size, o.ETag, o.Hash = e.LFS.Size, `"`+e.LFS.OID+`"`, "sha256:"+e.LFS.OID
	} else {
		o.ETag, o.Hash = `"`+e.OID+`"`, "git-sha1:"+e.OID
	}
	return o
}

// stat describes a file of a repository.
func (h *hub) stat(ctx context.Context, uri string) (Object, error) {
	p, err := parseHub(uri)
	if err != nil {
		return Object{}, err
	}
	if p.path == "" {
		return Object{}, fs.ErrNotExist
	}
	commit, err := h.commit(ctx, &p)
	if err != nil {
		return Object{}, err
	}
	if h.settings.offline {
		return h.settings.cachedObject(&p, commit)
	}
	resp, err := h.ask(ctx, &p, func() (*http.Request, error) {
		req := h.request(ctx, "api", p.kind, p.repo, "paths-info", commit)
		data, err := json.Marshal(map[string]any{"paths": []string{p.path}, "expand": false})
		req.Method = http.MethodPost
		req.Header.Set("Content-Type", "application/json")
		req.Body, req.ContentLength = io.NopCloser(strings.NewReader(string(data))), int64(len(data))
		return req, err
	})
	if err != nil {
		return Object{}, err
	}
	defer resp.Body.Close()
	var entries []hubEntry
	if err := decodeJSON(resp, &entries); err != nil {
		return Object{}, err
	}
	for i := range entries {
		if e := &entries[i]; e.Path == p.path && e.Type == "file" {
			return e.object(&p, commit), nil
		}
	}
	return Object{}, fs.ErrNotExist
}

// list calls add with the files below a folder of a repository.
func (h *hub) list(ctx context.Context, folder string, add func(string, Object) error) error {
	p, err := parseHub(folder)
	if err != nil {
		return err
	}
	commit, err := h.commit(ctx, &p)
	if err != nil {
		return err
	}
	if h.settings.offline {
		if err := h.settings.cachedList(&p, commit, add); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return h.offline()
	}
	first := h.request(ctx, "api", p.kind, p.repo, "tree", commit, p.path)
	first.URL.RawPath = strings.TrimSuffix(first.URL.RawPath, "/")
	first.URL.Path = strings.TrimSuffix(first.URL.Path, "/")
	first.URL.RawQuery = "recursive=true&expand=false"
	var turned pages
	for next := first.URL; next != nil; {
		page := next
		resp, err := h.ask(ctx, &p, func() (*http.Request, error) { return h.authorized(ctx, page), nil })
		if err != nil {
			return err
		}
		err = eachEntry(resp, func(e *hubEntry) error {
			rel := e.Path
			if p.path != "" {
				rel = strings.TrimPrefix(e.Path, p.path+"/")
			}
			if e.Type != "file" || rel == e.Path && p.path != "" {
				return nil
			}
			return add(rel, e.object(&p, commit))
		})
		resp.Body.Close()
		if err != nil {
			return err
		}
		if next, err = h.nextPage(resp); err != nil || next == nil {
			return err
		}
		if err := turned.next(next.String(), h.endpoint.Host); err != nil {
			return err
		}
	}
	return nil
}

// eachEntry decodes one page of a tree, an entry at a time.
func eachEntry(resp *http.Response, do func(*hubEntry) error) error {
	dec := json.NewDecoder(io.LimitReader(resp.Body, 64<<20))
	bad := func(err error) error {
		return &Error{Kind: ErrUnreachable, Text: fmt.Sprintf("the list of files from %s cannot be read: %v",
			resp.Request.URL.Host, err),
			Hint: "run the same command again"}
	}
	if t, err := dec.Token(); err != nil || t != json.Delim('[') {
		return bad(err)
	}
	for dec.More() {
		var e hubEntry
		if err := dec.Decode(&e); err != nil {
			return bad(err)
		}
		if err := do(&e); err != nil {
			return err
		}
	}
	if _, err := dec.Token(); err != nil {
		return bad(err)
	}
	return nil
}

var nextLink = lazy.Regexp(`<([^>]*)>\s*;\s*rel="?next"?`)

// nextPage returns the address of the page after an answer, or nil if it was the last one.
func (h *hub) nextPage(resp *http.Response) (*url.URL, error) {
	for _, link := range resp.Header.Values("Link") {
		if m := nextLink().FindStringSubmatch(link); m != nil {
			u, err := resp.Request.URL.Parse(m[1])
			if err != nil || u.Host != h.endpoint.Host {
				return nil, &Error{Kind: ErrUnreachable, Text: h.endpoint.Host +
					" continues its list of files elsewhere"}
			}
			return u, nil
		}
	}
	return nil, nil
}
