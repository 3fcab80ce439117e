package remotetest

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A Hub implements the part of the Hugging Face Hub's API that dsload uses. Large files are at
// signed addresses on another host.
type Hub struct {
	*Server         // the API
	Store   *Server // holds large files

	Page  int    // entries of a page of a tree
	Token string // files need it; "" for none

	mu     sync.Mutex
	repos  map[string]map[string]map[string][]byte // "datasets/a/b" -> commit -> path -> data
	refs   map[string]string
	signed int               // addresses that were signed
	valid  int               // those up to here have expired
	shown  map[string][]byte // what is sent in place of a file
}

// Commit returns the name of the n-th commit.
func Commit(n int) string { return fmt.Sprintf("%040x", n) }

// NewHub starts a Hub with two files a page.
func NewHub() *Hub {
	h := &Hub{Server: New(), Store: New(), Page: 2, repos: map[string]map[string]map[string][]byte{},
		refs: map[string]string{}, shown: map[string][]byte{}}
	h.Serve = h.api
	h.Store.Serve = h.refuseExpired
	return h
}

// Close stops both servers.
func (h *Hub) Close() {
	h.Server.Close()
	h.Store.Close()
}

// Add sets the files of a commit of a repository, such as "datasets/acme/docs", and makes main, or
// the revision given, point to it.
func (h *Hub) Add(repo, revision string, commit int, files map[string]string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.repos[repo] == nil {
		h.repos[repo] = map[string]map[string][]byte{}
	}
	tree := map[string][]byte{}
	for name, data := range files {
		tree[name] = []byte(data)
	}
	h.repos[repo][Commit(commit)] = tree
	h.refs[repo+"@"+revision] = Commit(commit)
}

// Show makes the store send other bytes in place of a file.
func (h *Hub) Show(path, data string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.shown[path] = []byte(data)
}

// Expire makes all addresses that were signed so far answer 403.
func (h *Hub) Expire() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.valid = h.signed
}

// Env returns the environment for the Hub's clients, with a home of their own.
func (h *Hub) Env(home string) []string {
	return []string{"HF_ENDPOINT=" + h.URL, "HF_HOME=" + home, "HF_HUB_OFFLINE=", "TRANSFORMERS_OFFLINE=",
		"HF_TOKEN=", "HUGGING_FACE_HUB_TOKEN=", "HF_TOKEN_PATH=",
		"HF_HUB_CACHE=", "HUGGINGFACE_HUB_CACHE=", "HTTP_PROXY=", "http_proxy="}
}

func (h *Hub) refuseExpired(w http.ResponseWriter, r *http.Request) bool {
	h.mu.Lock()
	n, _ := strconv.Atoi(r.URL.Query().Get("Signature"))
	expired := n <= h.valid
	h.mu.Unlock()
	if expired {
		http.Error(w, "expired", http.StatusForbidden)
	}
	return expired
}

// IsLarge reports whether a file is in the store of large files.
func IsLarge(name string) bool {
	return slices.ContainsFunc([]string{".jsonl", ".txt", ".gz", ".zip", "tokenizer.json"},
		func(s string) bool { return strings.HasSuffix(name, s) })
}

func entryOf(name string, data []byte) map[string]any {
	blob := sha1.Sum(append([]byte(fmt.Sprintf("blob %d\x00", len(data))), data...))
	e := map[string]any{"type": "file", "oid": fmt.Sprintf("%x", blob), "size": len(data), "path": name}
	if IsLarge(name) {
		e["lfs"] = map[string]any{"oid": fmt.Sprintf("%x", sha256.Sum256(data)), "size": len(data), "pointerSize": 130}
	}
	return e
}

func (h *Hub) api(w http.ResponseWriter, r *http.Request) bool {
	if f := h.nextFault(); f.Status != 0 {
		for k, v := range f.Header {
			w.Header()[k] = v
		}
		http.Error(w, "{}", f.Status)
		return true
	}
	refuse := func(status int, code string) bool {
		w.Header().Set("X-Error-Code", code)
		w.Header().Set("X-Error-Message", "the reason is "+code)
		http.Error(w, "{}", status)
		return true
	}
	repo, what, revision, rest := splitPath(r.URL)
	if what == "" {
		return refuse(404, "RepoNotFound")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	commit := revision
	if c, ok := h.refs[repo+"@"+revision]; ok {
		commit = c
	}
	files, found := h.repos[repo][commit]
	switch {
	case h.repos[repo] == nil:
		return refuse(401, "RepoNotFound")
	case !found:
		return refuse(404, "RevisionNotFound")
	case h.Token != "" && what != "revision" && r.Header.Get("Authorization") != "Bearer "+h.Token:
		return refuse(401, "GatedRepo")
	}
	reply := func(v any) bool {
		data, _ := json.Marshal(v)
		w.Header().Set("Content-Type", "application/json")
		w.Write(data)
		return true
	}
	switch what {
	case "revision":
		return reply(map[string]any{"sha": commit})
	case "paths-info":
		return reply(pathsInfo(r, files))
	case "tree":
		return h.tree(w, r, files, rest, reply, refuse)
	case "resolve":
		data, ok := files[rest]
		if !ok {
			return refuse(404, "EntryNotFound")
		}
		return h.resolve(w, r, commit, rest, data)
	}
	return refuse(404, "EntryNotFound")
}

// splitPath splits the path of a request: "models" or "datasets" with the repository, what is asked
// for, the revision, and the file. what is empty where the path names no revision.
func splitPath(u *url.URL) (repo, what, revision, rest string) {
	path := strings.Split(strings.Trim(u.EscapedPath(), "/"), "/")
	for i := range path {
		path[i], _ = url.PathUnescape(path[i])
	}
	if path[0] == "api" {
		path = path[1:]
	} else if path[0] != "datasets" {
		path = append([]string{"models"}, path...)
	}
	if len(path) < 5 {
		return "", "", "", ""
	}
	return strings.Join(path[:3], "/"), path[3], path[4], strings.Join(path[5:], "/")
}

// pathsInfo describes those of the requested files that exist.
func pathsInfo(r *http.Request, files map[string][]byte) []any {
	var ask struct{ Paths []string }
	json.NewDecoder(r.Body).Decode(&ask)
	out := []any{}
	for _, p := range ask.Paths {
		if data, ok := files[p]; ok {
			out = append(out, entryOf(p, data))
		}
	}
	return out
}

func (h *Hub) tree(w http.ResponseWriter, r *http.Request, files map[string][]byte, folder string, reply func(any) bool,
	refuse func(int, string) bool) bool {
	var names []string
	folders := map[string]bool{}
	for name := range files {
		if folder != "" && !strings.HasPrefix(name, folder+"/") {
			continue
		}
		names = append(names, name)
		if i := strings.LastIndexByte(name, '/'); i > len(folder) {
			folders[name[:i]] = true
		}
	}
	if names == nil {
		return refuse(404, "EntryNotFound")
	}
	for f := range folders {
		names = append(names, f)
	}
	slices.Sort(names)
	at, _ := strconv.Atoi(r.URL.Query().Get("cursor"))
	out := []any{}
	for _, name := range names[min(at, len(names)):min(at+h.Page, len(names))] {
		if data, ok := files[name]; ok {
			out = append(out, entryOf(name, data))
		} else {
			out = append(out, map[string]any{"type": "directory", "oid": Commit(0), "size": 0, "path": name})
		}
	}
	if at += h.Page; at < len(names) {
		q := r.URL.Query()
		q.Set("cursor", strconv.Itoa(at))
		w.Header().Set("Link", fmt.Sprintf(`<%s%s?%s>; rel="next"`, h.URL, r.URL.EscapedPath(), q.Encode()))
	}
	return reply(out)
}

func (h *Hub) resolve(w http.ResponseWriter, r *http.Request, commit, name string, data []byte) bool {
	e := entryOf(name, data)
	w.Header().Set("X-Repo-Commit", commit)
	if !IsLarge(name) {
		h.mu.Unlock()
		defer h.mu.Lock()
		h.Send(w, r, File{Data: data, ETag: fmt.Sprintf("%q", e["oid"])}, nil)
		return true
	}
	oid := e["lfs"].(map[string]any)["oid"].(string)
	h.signed++
	if other, ok := h.shown[name]; ok {
		data = other
	}
	h.Store.Put("/"+oid, File{Data: data})
	w.Header().Set("X-Linked-Size", fmt.Sprint(e["size"]))
	w.Header().Set("X-Linked-Etag", fmt.Sprintf("%q", oid))
	w.Header().Set("Location", fmt.Sprintf("%s/%s?Signature=%d", h.Store.URL, oid, h.signed))
	w.WriteHeader(http.StatusFound)
	return true
}
