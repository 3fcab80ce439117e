package page

import (
	"embed"
	"io"
	"net/http"
	"path"
	"strings"
)

//go:embed static
var static embed.FS

// Prefix is the path of the files that pages are made of.
const Prefix = "/page/"

// policy lets a page load files of its own server and nothing else. No inline text of a page acts
// as script or style.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// types maps the extensions of the files that are served to content types. Other files are not
// served.
var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// Serve sends a page, "build" or "serve".
func Serve(w http.ResponseWriter, name string) { send(w, "static/"+name+".html") }

// ServeFile answers a request below Prefix with the file of that name, and reports whether there is one.
func ServeFile(w http.ResponseWriter, r *http.Request) bool {
	name, found := strings.CutPrefix(r.URL.Path, Prefix)
	return found && path.Ext(name) != ".html" && send(w, path.Join("static", path.Join("/", name)))
}

func send(w http.ResponseWriter, name string) bool {
	kind, known := types[path.Ext(name)]
	f, err := static.Open(name)
	if !known || err != nil {
		return false
	}
	defer f.Close()
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Security-Policy", policy)
	h.Set("Cache-Control", "no-cache")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	_, _ = io.CopyBuffer(struct{ io.Writer }{w}, f, make([]byte, 4<<10)) // the client may be gone
	return true
}
