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
	"regexp"
	"strings"
	"sync"
)

// The Hub's part of HTTP:
//
//	GET  /api/datasets/OWNER/NAME/revision/REV   {"sha": COMMIT}
//	POST /api/datasets/OWNER/NAME/paths-info/COMMIT   {"paths": [PATH]} -> [entry]
//	GET  /api/datasets/OWNER/NAME/tree/COMMIT/FOLDER?recursive=true   [entry, …], more by the header Link
//	GET  /datasets/OWNER/NAME/resolve/COMMIT/PATH   redirects: X-Repo-Commit, X-Linked-Size, X-Linked-Etag
//
// An entry of a large file has the SHA-256 of its content, any other its git object id. Large files
// are stored elsewhere, at signed addresses that expire. If one answers 403, a new one is
// requested, once.

// hub is the backend of hf:// addresses.
type hub struct {
	store    *Store
	settings hubSettings
	endpoint *url.URL

	mu      sync.Mutex
	commits map[string]string // by repository and revision
	signed  map[string]*url.URL
}

func newHub(s *Store) (backend, error) {
	settings := hubFromEnvironment()
	u, err := url.Parse(settings.endpoint)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, &Error{Kind: ErrUsage, Text: "HF_ENDPOINT is not an http address",
			Hint: "set it to one such as https://huggingface.co"}
	}
	return &hub{store: s, settings: settings, endpoint: u, commits: map[string]string{},
		signed: map[string]*url.URL{}}, nil
}

// A hubPath is what an address names on the Hub.
type hubPath struct {
	kind     string // "datasets" or "models"
	repo     string // OWNER/NAME
	revision string // as written; "" for the main branch
	path     string // below the repository, without slashes around it
}

// specialRevision matches the revisions whose names contain unescaped slashes.
var specialRevision = regexp.MustCompile(`^refs/(?:convert/\w+|pr/\d+)`)

// parseHub parses hf://[datasets/]OWNER/NAME[@REVISION][/PATH].
func parseHub(address string) (p hubPath, err error) {
	rest := address[strings.Index(address, "://")+3:]
	p.kind = "models"
	for prefix, kind := range map[string]string{"datasets/": "datasets", "models/": "models"} {
		if after, ok := strings.CutPrefix(rest, prefix); ok {
			p.kind, rest = kind, after
		}
	}
	for _, other := range []string{"spaces/", "buckets/"} {
		if strings.HasPrefix(rest, other) {
			return p, &Error{Kind: ErrUsage, Text: other[:len(other)-1] + " of the Hub cannot be read",
				Hint: "name a repository as hf://datasets/OWNER/NAME"}
		}
	}
	owner, rest, _ := strings.Cut(rest, "/")
	name := owner
	if before, revision, ok := strings.Cut(owner, "@"); ok { // a repository without owner
		name, rest = before, revision+"/"+rest
		p.repo, rest = name, "@"+strings.TrimSuffix(rest, "/")
	} else if rest == "" {
		p.repo = owner
	} else {
		end := strings.IndexAny(rest, "/@")
		if end < 0 {
			end = len(rest)
		}
		p.repo, rest = owner+"/"+rest[:end], rest[end:]
	}
	if after, ok := strings.CutPrefix(rest, "@"); ok {
		if p.revision = specialRevision.FindString(after); p.revision == "" {
			p.revision, _, _ = strings.Cut(after, "/")
		}
		rest = after[len(p.revision):]
		if p.revision, err = url.PathUnescape(p.revision); err != nil || p.revision == "" {
			return p, &Error{Kind: ErrUsage, Text: "there is no revision after the @",
				Hint: "write hf://datasets/OWNER/NAME@REVISION"}
		}
	}
	p.path = strings.Trim(rest, "/")
	if !repoName.MatchString(p.repo) || strings.Contains(p.repo, "..") {
		return p, &Error{Kind: ErrUsage, Text: "this names no repository of the Hub",
			Hint: "write hf://datasets/OWNER/NAME[@REVISION][/PATH], or hf://OWNER/NAME for a model"}
	}
	return p, nil
}

var repoName = regexp.MustCompile(`^[\w.-]+(?:/[\w.-]+)?$`)

// repository returns the address of the repository that p is in, with its revision.
func (p *hubPath) repository() string {
	s := "hf://"
	if p.kind == "datasets" {
		s += "datasets/"
	}
	s += p.repo
	if p.revision != "" {
		s += "@" + p.escapedRevision()
	}
	return s
}

// escapedRevision returns the revision as an address has it: other slashes than those of
// specialRevision are escaped.
func (p *hubPath) escapedRevision() string {
	if specialRevision.FindString(p.revision) == p.revision {
		return p.revision
	}
	return strings.NewReplacer("%", "%25", "/", "%2F").Replace(p.revision)
}

func (h *hub) host(*Object) string { return h.endpoint.Host }

// request returns a GET of a path on the Hub, each of whose parts is escaped.
func (h *hub) request(ctx context.Context, parts ...string) *http.Request {
	u := *h.endpoint
	for i := range parts {
		parts[i] = escapePath(parts[i])
	}
	u.RawPath = strings.TrimSuffix(h.endpoint.EscapedPath(), "/") + "/" + strings.Join(parts, "/")
	u.Path, _ = url.PathUnescape(u.RawPath)
	return h.authorized(ctx, &u)
}

// authorized returns a GET with the token, if u is on the Hub.
func (h *hub) authorized(ctx context.Context, u *url.URL) *http.Request {
	req := newRequest(ctx, u)
	if h.settings.token != "" && u.Host == h.endpoint.Host && u.Scheme == h.endpoint.Scheme {
		req.Header.Set("Authorization", "Bearer "+h.settings.token)
	}
	return req
}

// escapePath escapes each element of a path.
func escapePath(path string) string {
	names := strings.Split(path, "/")
	for i := range names {
		names[i] = url.PathEscape(names[i])
	}
	return strings.Join(names, "/")
}

// commit returns the commit that a revision named when it was first requested.
func (h *hub) commit(ctx context.Context, p *hubPath) (string, error) {
	key := p.repository()
	h.mu.Lock()
	commit := h.commits[key]
	h.mu.Unlock()
	if commit == "" && h.store.opts.Revision != nil {
		commit = h.store.opts.Revision(key)
	}
	if commit == "" && isCommit(p.revision) {
		commit = p.revision
	}
	if commit == "" && h.settings.offline {
		var err error
		if commit, err = h.settings.cachedCommit(p); err != nil {
			return "", err
		}
	}
	if commit == "" {
		revision := p.revision
		if revision == "" {
			revision = "main"
		}
		resp, err := h.ask(ctx, p, func() (*http.Request, error) {
			req := h.request(ctx, "api", p.kind, p.repo, "revision")
			u := req.URL
			u.RawPath = u.EscapedPath() + "/" + url.PathEscape(revision)
			u.Path += "/" + revision
			return req, nil
		})
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		var info struct {
			SHA string `json:"sha"`
		}
		if err := decodeJSON(resp, &info); err != nil {
			return "", err
		}
		if commit = info.SHA; !isCommit(commit) {
			return "", &Error{Kind: ErrUnreachable, Text: fmt.Sprintf("%s names no commit of %s", h.endpoint.Host, key)}
		}
	}
	h.mu.Lock()
	h.commits[key] = commit
	h.mu.Unlock()
	return commit, nil
}

var commitName = regexp.MustCompile(`^[0-9a-f]{40}$`)

func isCommit(revision string) bool { return commitName.MatchString(revision) }

// ask sends a request to the Hub and explains its refusals.
func (h *hub) ask(ctx context.Context, p *hubPath, request func() (*http.Request, error)) (*http.Response, error) {
	if h.settings.offline {
		return nil, h.offline()
	}
	resp, err := h.store.ask(ctx, h.endpoint.Host, request, func(resp *http.Response) error {
		if resp.StatusCode == http.StatusOK {
			return nil
		}
		return h.refusal(resp, p)
	})
	var own *Error
	if errors.As(err, &own) && errors.Is(own.Kind, ErrUnreachable) && own.Status == 0 && own.retry {
		alone := *own
		alone.Hint = "check the network, or HF_ENDPOINT and HTTPS_PROXY if you set them; " +
			"with HF_HUB_OFFLINE=1 what huggingface_hub has downloaded is read"
		err = &alone
	}
	return resp, err
}

func (h *hub) offline() error {
	return &Error{Kind: ErrUnreachable, Text: "it is not in the cache " + h.settings.cache +
		", and HF_HUB_OFFLINE is set",
		Hint: "unset HF_HUB_OFFLINE, or download it first"}
}

// refusal explains an unwanted answer of the Hub.
func (h *hub) refusal(resp *http.Response, p *hubPath) error {
	e := statusError(resp, h.endpoint.Host)
	if words := oneLine(resp.Header.Get("X-Error-Message")); words != "" {
		e.Text += ": " + words
	}
	withToken := h.settings.token != ""
	login := "set HF_TOKEN to a token that may read it"
	if withToken {
		login = "the token that is set may not read it: check HF_TOKEN"
	}
	switch resp.Header.Get("X-Error-Code") {
	case "GatedRepo":
		e.Kind, e.Hint = ErrDenied, fmt.Sprintf("the repository is gated: accept its conditions on %s/%s%s, and %s",
			strings.TrimSuffix(h.settings.endpoint, "/"), map[string]string{"datasets": "datasets/"}[p.kind], p.repo,
			login)
	case "RepoNotFound":
		e.Kind, e.Hint = ErrNoBucket, "check the name; a private repository needs a token in HF_TOKEN"
	case "RevisionNotFound":
		e.Kind, e.Hint = ErrNoBucket, "check the revision after the @; a slash in it is written %2F"
	case "EntryNotFound":
		e.Kind, e.Hint = ErrNoBucket, "check the path"
	default:
		switch e.Kind {
		case ErrDenied:
			e.Hint = login
		case fs.ErrNotExist:
			e.Kind = ErrNoBucket
		}
	}
	return e
}

// maxAnswer limits an answer of the Hub's API, except for trees, which come in pages.
const maxAnswer = 8 << 20

func decodeJSON(resp *http.Response, v any) error {
	data, err := readLimited(resp.Body, maxAnswer)
	if err == nil {
		err = json.Unmarshal(data, v)
	}
	if err != nil {
		return &Error{Kind: ErrUnreachable, Text: fmt.Sprintf("%s sent invalid JSON: %v", resp.Request.URL.Host,
			err)}
	}
	return nil
}

// hubEntry is a file or folder of a repository.
type hubEntry struct {
	Type string `json:"type"` // "file" or "directory"
	OID  string `json:"oid"`  // of git
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

var nextLink = regexp.MustCompile(`<([^>]*)>\s*;\s*rel="?next"?`)

// nextPage returns the address of the page after an answer, or nil if it was the last one.
func (h *hub) nextPage(resp *http.Response) (*url.URL, error) {
	for _, link := range resp.Header.Values("Link") {
		if m := nextLink.FindStringSubmatch(link); m != nil {
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

// HubRepository splits the address of a dataset of the Hub into its repository, with the revision,
// and the path below it.
func HubRepository(address string) (repository, below string, ok bool) {
	if scheme, _ := Scheme(address); scheme != "hf" {
		return "", "", false
	}
	p, err := parseHub(address)
	return p.repository(), p.path, err == nil && p.kind == "datasets"
}

// Repository returns the address of the Hub repository that an address is in, with its revision, or
// "" if the address is not one of the Hub.
func Repository(address string) string {
	if scheme, _ := Scheme(address); scheme != "hf" {
		return ""
	}
	p, err := parseHub(address)
	if err != nil {
		return ""
	}
	return p.repository()
}

// HubOffline reports whether an address is one of the Hub, and only its cache is read.
func HubOffline(address string) bool {
	scheme, _ := Scheme(address)
	settings := hubFromEnvironment()
	return scheme == "hf" && settings.offline
}
