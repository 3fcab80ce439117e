package remote

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
)

// maxSigned limits how many signed addresses are kept, which are those of open files.
const maxSigned = 16

// get implements backend.
func (h *hub) get(ctx context.Context, o *Object, from, end int64) (*body, error) {
	p, err := parseHub(o.URI)
	if err != nil {
		return nil, err
	}
	if b, ok := h.settings.cachedBody(&p, o, from); ok {
		return b, nil
	}
	if h.settings.offline {
		return nil, h.offline()
	}
	for attempt := 0; ; attempt++ {
		at, err := h.resolve(ctx, &p, o)
		if err != nil {
			return nil, err
		}
		req := h.authorized(ctx, at)
		setRange(req.Header, from, end)
		resp, err := h.store.send(h.store.direct, req)
		if err != nil {
			return nil, err
		}
		elsewhere := at.Host != h.endpoint.Host
		if code := resp.StatusCode; elsewhere && (code == http.StatusForbidden || code == http.StatusUnauthorized) {
			resp.Body.Close()
			h.mu.Lock()
			delete(h.signed, o.URI)
			h.mu.Unlock()
			if attempt == 0 {
				continue
			}
			return nil, &Error{Kind: ErrDenied, Status: code,
				Text: fmt.Sprintf("%s denies access (%s), also by a link that was just signed", at.Host,
					statusText(code))}
		}
		if resp.StatusCode >= 300 && resp.StatusCode < 400 {
			resp.Body.Close()
			return nil, &Error{Kind: ErrUnreachable, Text: at.Host + " redirects where it should answer"}
		}
		b, err := answer(resp, o.URI, from)
		if err != nil {
			resp.Body.Close()
			if !elsewhere {
				err = h.refusal(resp, &p)
			}
			return nil, err
		}
		// The headers of the store of large files cannot be compared with the Hub's. The link was
		// compared, and the hash of the content is too.
		b.object.ETag, b.object.Revision, b.object.Hash, b.object.Modified = o.ETag, o.Revision, o.Hash, o.Modified
		return b, nil
	}
}

// resolve returns the address of an object's bytes, and compares what the Hub says about them.
func (h *hub) resolve(ctx context.Context, p *hubPath, o *Object) (*url.URL, error) {
	h.mu.Lock()
	known := h.signed[o.URI]
	h.mu.Unlock()
	if known != nil {
		return known, nil
	}
	parts := []string{p.repo, "resolve", o.Revision, p.path}
	if p.kind == "datasets" {
		parts = append([]string{"datasets"}, parts...)
	}
	at := h.request(ctx, parts...).URL
	for range maxRedirects {
		req := h.authorized(ctx, at)
		req.Method = http.MethodHead
		resp, err := h.store.send(h.store.direct, req)
		if err != nil {
			return nil, err
		}
		resp.Body.Close()
		if err := compareLink(resp, o); err != nil {
			return nil, err
		}
		if resp.StatusCode < 300 || resp.StatusCode >= 400 {
			if resp.StatusCode != http.StatusOK {
				return nil, h.refusal(resp, p)
			}
			break
		}
		to, err := at.Parse(resp.Header.Get("Location"))
		if err != nil || to.Host == "" {
			return nil, &Error{Kind: ErrUnreachable, Text: at.Host + " redirects to nowhere"}
		}
		if at.Scheme == "https" && to.Scheme != "https" {
			return nil, &Error{Kind: ErrUnreachable, Text: fmt.Sprintf("%s redirects to %s without TLS", at.Host,
				to.Host)}
		}
		at = to
		if to.Host != h.endpoint.Host {
			break // signed for a GET, whose answer says the rest
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.signed) >= maxSigned {
		clear(h.signed)
	}
	h.signed[o.URI] = at
	return at, nil
}

// compareLink compares the Hub's answer for a file with the file's entry in the list.
func compareLink(resp *http.Response, o *Object) error {
	if commit := resp.Header.Get("X-Repo-Commit"); commit != "" && o.Revision != "" && commit != o.Revision {
		return &ChangedError{"commit", o.Revision, oneLine(commit)}
	}
	now := Object{Size: -1, ETag: quotedTag(resp.Header.Get("X-Linked-Etag"))}
	if n, err := strconv.ParseInt(resp.Header.Get("X-Linked-Size"), 10, 64); err == nil {
		now.Size = n
	}
	return o.compare(&now)
}
