package notify

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "S3cr3tT0ken"

// hook is a service that keeps the messages it gets. answer gives the status of the n-th post, from 1; 0 is none at all.
type hook struct {
	*httptest.Server
	mu   sync.Mutex
	got  []map[string]any
	path []string
	over chan struct{}
}

func newHook(t *testing.T, answer func(n int) int) *hook {
	h := &hook{over: make(chan struct{})}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var v map[string]any
		_ = json.Unmarshal(body, &v)
		h.mu.Lock()
		h.got, h.path = append(h.got, v), append(h.path, r.URL.RequestURI())
		n := len(h.got)
		h.mu.Unlock()
		switch code := answer(n); code {
		case 0:
			<-h.over
		case 302:
			http.Redirect(w, r, "/elsewhere", code)
		default:
			w.WriteHeader(code)
		}
	}))
	t.Cleanup(func() {
		close(h.over)
		h.Server.CloseClientConnections()
		h.Server.Close()
	})
	return h
}

// send sends one message and returns what was warned of.
func send(t *testing.T, address string, wait time.Duration) (warnings []string) {
	t.Helper()
	var mu sync.Mutex
	n, err := New([]string{address}, func(text string) {
		mu.Lock()
		warnings = append(warnings, text)
		mu.Unlock()
	})
	if err != nil {
		t.Fatal(err)
	}
	n.Send(Message{Event: "done", Title: "a build", Text: "30 rows", Facts: map[string]any{"examples": 30}})
	n.Close(wait)
	n.Send(Message{Event: "done"}) // after Close nothing happens
	for _, w := range warnings {
		if strings.Contains(w, secret) {
			t.Errorf("the secret is in %q", w)
		}
	}
	return warnings
}

func TestMessagesAreTriedAgain(t *testing.T) {
	shortPauses(t)
	for _, c := range []struct {
		name   string
		answer func(int) int
		posts  int
		warned string
	}{
		{"taken", func(int) int { return 204 }, 1, ""},
		{"at the third attempt", func(n int) int { return map[int]int{1: 500, 2: 429}[n] + 200*(n/3) }, 3, ""},
		{"never", func(int) int { return 503 }, attempts, "it answered 503"},
		{"wrong address", func(int) int { return 404 }, 1, "it answered 404; check the address"},
		{"elsewhere", func(int) int { return 302 }, 1, "it answered 302"},
	} {
		h := newHook(t, c.answer)
		warned := strings.Join(send(t, h.URL+"/hook/"+secret+"?key="+secret, 20*time.Second), "; ")
		if len(h.got) != c.posts || (warned == "") != (c.warned == "") || !strings.Contains(warned, c.warned) {
			t.Errorf("%s: %d posts, warned %q", c.name, len(h.got), warned)
		}
		if h.path[0] != "/hook/"+secret+"?key="+secret || h.got[0]["event"] != "done" || h.got[0]["examples"] != 30.0 {
			t.Errorf("%s: %s got %v", c.name, h.path[0], h.got[0])
		}
	}
}

func shortPauses(t *testing.T) {
	before := firstPause
	firstPause = time.Millisecond
	t.Cleanup(func() { firstPause = before })
}

// An attempt that Close cuts short says nothing: what is warned of is the reason of the one before.
func TestLastReason(t *testing.T) {
	shortPauses(t)
	var n *Notifier
	h := newHook(t, func(post int) int {
		if post == 1 {
			return 503
		}
		n.cancel()
		return 0
	})
	var warned string
	n, err := New([]string{h.URL}, func(text string) { warned = text })
	if err != nil {
		t.Fatal(err)
	}
	n.Send(Message{Event: "done"})
	n.Close(time.Minute)
	if !strings.HasSuffix(warned, ": it answered 503") {
		t.Error(warned)
	}
}

// A service that is down or silent ends with Close, with a word that names no address.
func TestServicesThatDoNotAnswer(t *testing.T) {
	shortPauses(t)
	h := newHook(t, func(int) int { return 0 })
	if warned := send(t, h.URL+"/"+secret, 50*time.Millisecond); len(warned) != 1 ||
		!strings.Contains(warned[0], "did not answer in time") {
		t.Errorf("silent: %q", warned)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if warned := send(t, "http://"+l.Addr().String()+"/"+secret, time.Minute); len(warned) != 1 ||
		!strings.Contains(warned[0], "refuses connections") {
		t.Errorf("down: %q", warned)
	}
}

func TestAddressesAreSecrets(t *testing.T) {
	file := filepath.Join(t.TempDir(), "url")
	if err := os.WriteFile(file, []byte("https://hooks.slack.com/services/"+secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOOK", "https://ntfy.sh/"+secret)
	for address, want := range map[string]string{
		"https://discord.com/api/webhooks/1/" + secret: "discord",
		"https://canary.discord.com/api/webhooks/1/x":  "discord",
		"https://notdiscord.com/x":                     "json", "https://discord.com.example/x": "json",
		"https://hooks.slack.com/services/x": "slack", "@" + file: "slack", "env:HOOK": "ntfy",
		"https://ntfy.example.org/alerts": "ntfy", "ntfy+http://127.0.0.1:1/a": "ntfy",
		"discord+https://proxy.example/x": "discord",
		"json+https://discord.com/x":      "json", "http://127.0.0.1:9/x": "json",
	} {
		s, err := parse(address)
		if err != nil || s.kind != want {
			t.Errorf("%s: %v %v, want %s", address, s, err, want)
		}
	}
	for _, address := range []string{"", secret, "ftp://" + secret, "https://", "https:///" + secret, "http://[" +
		secret, "@/nowhere", "env:NOT_SET_" + "X", "slack+" + secret} {
		_, err := parse(address)
		if err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%q: %v", address, err)
		}
	}
}

// Names of others mention nobody and are cut to what a service takes.
func TestForms(t *testing.T) {
	u, err := url.Parse("https://example.org/base/topic")
	if err != nil {
		t.Fatal(err)
	}
	m := Message{Event: "failed", Title: "build <!channel> @everyone", Text: strings.Repeat("ä", 9000),
		Facts: map[string]any{"exit_code": 3}}
	form := func(name string) (to *url.URL, v map[string]any) {
		to, body, err := kinds[name].request(u, m)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(body, &v); err != nil {
			t.Fatal(err)
		}
		return to, v
	}
	_, d := form("discord")
	if n := len([]rune(d["content"].(string))); n != maxDiscord ||
		len(d["allowed_mentions"].(map[string]any)["parse"].([]any)) != 0 {
		t.Errorf("discord: %d characters, %v", n, d["allowed_mentions"])
	}
	if _, s := form("slack"); strings.ContainsAny(s["text"].(string), "<>") ||
		!strings.Contains(s["text"].(string), "&lt;!channel&gt;") {
		t.Errorf("slack: %.60s", s["text"])
	}
	to, n := form("ntfy")
	if to.String() != "https://example.org/base/" || n["topic"] != "topic" || n["priority"] != 4.0 ||
		len(n["message"].(string)) > 4096 {
		t.Errorf("ntfy: %s %v", to, n["topic"])
	}
	if _, _, err := ntfy(&url.URL{Scheme: "https", Host: "ntfy.sh", Path: "/"}, m); err == nil {
		t.Error("ntfy without a topic")
	}
	if _, p := form("json"); p["event"] != "failed" || p["exit_code"] != 3.0 || p["title"] != m.Title ||
		p["text"] != m.Text {
		t.Errorf("json: %v", p["event"])
	}
}

func TestNilNotifierIsSilent(t *testing.T) {
	n, err := New(nil, nil)
	if n != nil || err != nil {
		t.Fatal(n, err)
	}
	n.Send(Message{})
	n.Close(0)
}
