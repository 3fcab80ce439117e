package notify

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"maps"
	"net"
	"net/url"
	"path"
	"strings"
	"syscall"
	"unicode/utf8"
)

// A kind is how a service takes messages.
type kind struct {
	name string
	// request returns where a message is posted, and its body.
	request func(address *url.URL, m Message) (*url.URL, []byte, error)
}

var kinds = map[string]kind{
	"discord": {"Discord", discord},
	"slack":   {"Slack", slack},
	"ntfy":    {"ntfy", ntfy},
	"json":    {"the webhook", plain},
}

// kindOf recognises a service by its host.
func kindOf(u *url.URL) string {
	host := strings.ToLower(u.Hostname())
	is := func(domain string) bool { return host == domain || strings.HasSuffix(host, "."+domain) }
	switch {
	case is("discord.com"), is("discordapp.com"):
		return "discord"
	case host == "hooks.slack.com", host == "hooks.slack-gov.com":
		return "slack"
	case is("ntfy.sh"), strings.HasPrefix(host, "ntfy."):
		return "ntfy"
	}
	return "json"
}

// Limits of the services, in characters.
const (
	maxDiscord = 2000
	maxSlack   = 4000
	maxNtfy    = 4096 / utf8.UTFMax // ntfy counts bytes
)

// suppressEmbeds is Discord's flag for a message whose links show no previews.
const suppressEmbeds = 4

// discord returns a request in which names mention nobody.
func discord(u *url.URL, m Message) (*url.URL, []byte, error) {
	body, err := json.Marshal(map[string]any{
		"content": cut(m.Title+"\n"+m.Text, maxDiscord), "flags": suppressEmbeds,
		"allowed_mentions": map[string]any{"parse": []string{}},
	})
	return u, body, err
}

// slack returns a request in which no name mentions anybody: Slack's three special characters are
// escaped.
func slack(u *url.URL, m Message) (*url.URL, []byte, error) {
	text := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(cut(m.Title+"\n"+m.Text, maxSlack))
	body, err := json.Marshal(map[string]any{"text": text, "unfurl_links": false})
	return u, body, err
}

// ntfy posts JSON to the server's root. The topic is the last element of the address's path.
func ntfy(u *url.URL, m Message) (*url.URL, []byte, error) {
	root := *u
	trimmed := strings.TrimRight(u.Path, "/")
	topic := path.Base(trimmed)
	if topic == "." || topic == "/" || topic == "" {
		return nil, nil, errors.New("its address has no topic, as https://ntfy.sh/TOPIC does")
	}
	root.Path, root.RawPath = strings.TrimSuffix(trimmed, topic), ""
	tag, priority := map[string]string{"done": "white_check_mark", "resumed": "arrows_counterclockwise"}[m.Event], 3
	if tag == "" {
		tag, priority = "warning", 4
	}
	body, err := json.Marshal(map[string]any{"topic": topic, "title": cut(m.Title, 200),
		"message": cut(m.Text, maxNtfy), "tags": []string{tag}, "priority": priority})
	return &root, body, err
}

// plain returns a request with one JSON object of facts.
func plain(u *url.URL, m Message) (*url.URL, []byte, error) {
	facts := map[string]any{}
	maps.Copy(facts, m.Facts)
	facts["event"], facts["title"], facts["text"] = m.Event, m.Title, m.Text
	body, err := json.Marshal(facts)
	return u, body, err
}

// cut shortens a text to at most limit characters.
func cut(s string, limit int) string {
	r := []rune(s)
	if len(r) <= limit {
		return s
	}
	return string(r[:limit-1]) + "…"
}

// reason returns why a request failed, without the address, which net/http's errors repeat.
func reason(err error) error {
	switch timeout, ok := errors.AsType[net.Error](err); {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return errors.New("it did not answer in time")
	case errors.As(err, new(*net.DNSError)):
		return errors.New("its name cannot be found")
	case errors.As(err, new(*tls.CertificateVerificationError)):
		return errors.New("its certificate is not trusted")
	case errors.Is(err, syscall.ECONNREFUSED):
		return errors.New("it refuses connections")
	case ok && timeout.Timeout():
		return errors.New("it did not answer in time")
	}
	return errors.New("it cannot be reached")
}
