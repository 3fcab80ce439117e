//go:build linux

package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	crand "crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dsload/dsload/internal/effort"
)

// csv draws tables whose records or headers have very many fields.
func (m *hostileMaker) csv() hostileCase {
	n := pick(m, 10, 10000, 1000000, 2000000)
	field := pick(m, ",", `"",`, "a,", `"""",`, `"`+"\n"+`",`)
	header, body := "text,b\n", []any{times{field, min(n, (4<<20-100)/len(field))}, "\n"}
	if m.rnd.IntN(2) == 0 {
		name := pick(m, "c,", ",", "longer_name_of_a_column,")
		header = strings.Repeat(name, min(n, (4<<20-100)/len(name))) + "text\n"
	}
	parts := []any{header}
	for range 1 + m.rnd.IntN(4) {
		parts = append(parts, body...)
	}
	args := []string{"build", m.file(".csv", parts...), "--on-bad-record", pick(m, "fail", "skip")}
	if body := pick(m, "", "{{ text }}", "{{ record }}", "{% for k in record %}{{ k }}{% endfor %}", "{{ missing }}"); body != "" {
		args = append(args, "--template", m.file(".jinja", body))
	}
	if m.rnd.IntN(4) == 0 {
		args = append(args, "--format", "recipes")
	}
	return hostileCase{cap: m.caps(), args: args}
}

// json draws lines with long keys, long numbers, escapes, many keys and prompts with targets.
func (m *hostileMaker) json() hostileCase {
	n := pick(m, 10, 100000, 4000000, 10000000)
	var parts []any
	switch m.rnd.IntN(6) {
	case 0:
		parts = []any{`{"text":"a","`, times{"k", n}, `":1}`, "\n"}
	case 1:
		parts = []any{`{"text":"a","n":`, times{pick(m, "1", "9", "0.0"), 1}, times{"1", n},
			pick(m, "", "e5", "e-99999999"), "}\n"}
	case 2:
		escape := pick(m, `\u0041`, `\ud83d\ude00`, `\ud800`, `\n`, `\\`, `\u0000`)
		parts = []any{`{"text":"`, times{escape, n / len(escape)}, `"}`, "\n"}
	case 3:
		parts = []any{`{"text":"a"`, times{`,"k":{"":1}`, n / 11}, "}\n"}
	case 4: // as many keys as fit, all of them different
		var b strings.Builder
		for i := range min(n/8, 450000) {
			fmt.Fprintf(&b, `,"%x":1`, i)
		}
		parts = []any{`{"text":"a"`, b.String(), "}\n"}
	case 5:
		open, shut := `{"a":`, "}"
		if m.rnd.IntN(2) == 0 {
			open, shut = "[", "]"
		}
		parts = []any{`{"text":"a","x":`, times{open, n / 10}, "1", times{shut, n / 10}, "}\n"}
	}
	var all []any
	for range 1 + m.rnd.IntN(3) {
		all = append(all, parts...)
	}
	args := []string{"build", m.file(".jsonl", all...), "--on-bad-record", pick(m, "fail", "skip")}
	body := pick(m, "", "{{ text }}", "{{ record }}", "{{ missing }}", `{{ "%s" % n }}`, `{{ n }}{{ x | length }}`,
		`{% block prompt %}{{ text }}{% endblock %}{% block target %}{{ record }}{% endblock %}`)
	if body != "" {
		args = append(args, "--template", m.file(".jinja", body))
		if strings.Contains(body, "target") && m.rnd.IntN(2) == 0 {
			args = append(args, "--causal-pairs", "--eos")
		}
	}
	return hostileCase{cap: m.caps(), args: args}
}

// vocabulary draws tokenizer files of all families, with large parts or parts that make a text
// longer.
func (m *hostileMaker) vocabulary() hostileCase {
	j := plainTokenizer()
	model := j["model"].(map[string]any)
	n := pick(m, 100, 20000, 200000, 1000000)
	ending, raw := ".json", ""
	switch m.rnd.IntN(9) {
	case 0: // a unigram
		pieces := []any{[]any{"<unk>", 0}}
		for i := range n {
			pieces = append(pieces, []any{fmt.Sprintf("▁w%x", i), -1.5 - float64(i%7)})
		}
		j["model"] = map[string]any{"type": "Unigram", "unk_id": 0, "byte_fallback": false, "vocab": pieces}
		j["pre_tokenizer"] = nil
	case 1: // WordPiece with a long prefix and long words
		vocab := map[string]int{"[UNK]": 0}
		for i := range min(n, 200000) {
			vocab[fmt.Sprintf("%s%x", strings.Repeat("#", i%20), i)] = len(vocab)
		}
		j["model"] = map[string]any{"type": "WordPiece", "unk_token": "[UNK]",
			"continuing_subword_prefix": strings.Repeat("#", pick(m, 2, 5000, 1000000)),
			"max_input_chars_per_word":  pick(m, 100, 1000000, math.MaxInt32), "vocab": vocab}
	case 2: // long merges
		vocab, merges, piece := map[string]int{"a": 0}, []any{}, "a"
		for range min(n/100, 2000) {
			merges = append(merges, []string{piece, "a"})
			piece += "a"
			vocab[piece] = len(vocab)
		}
		model["vocab"], model["merges"], model["unk_token"] = vocab, merges, "a"
	case 3: // very many merges
		merges := []any{}
		for i := range n {
			merges = append(merges, fmt.Sprintf("%c %c", '!'+i%94, '!'+i/94%94))
		}
		model["merges"] = merges
	case 4: // steps that each make a text longer
		steps := []any{}
		for range pick(m, 1, 10, 1000) {
			steps = append(steps, pick[any](m, map[string]any{"type": "NFKD"}, map[string]any{"type": "NFKC"},
				map[string]any{"type": "Lowercase"}, map[string]any{"type": "StripAccents"},
				map[string]any{"type": "Strip", "strip_left": true, "strip_right": true},
				map[string]any{"type": "Prepend", "prepend": "ab"},
				map[string]any{"type": "Replace", "pattern": map[string]string{"Regex": pick(m, "a", "", "b*", ".")},
					"content": "ﷺ"}))
		}
		j["normalizer"] = map[string]any{"type": "Sequence", "normalizers": steps}
	case 5: // a charsmap
		charsmap := binary.LittleEndian.AppendUint32(nil, uint32(pick(m, 4, 1<<20, math.MaxUint32)))
		charsmap = append(charsmap, bytes.Repeat([]byte(pick(m, "\x00", "\xff", "a\x00\x00\x80")), n)...)
		j["normalizer"] = map[string]any{"type": "Precompiled",
			"precompiled_charsmap": base64.StdEncoding.EncodeToString(charsmap)}
	case 6: // pre-tokenizers in a row
		steps := []any{}
		for range pick(m, 10, 500) {
			steps = append(steps, pick[any](m, map[string]any{"type": "Digits", "individual_digits": true},
				map[string]any{"type": "Punctuation", "behavior": "Isolated"},
				map[string]any{"type": "Split",
					"pattern":  map[string]string{"Regex": pick(m, `(a|b)*c`, `\s+(?!\S)`, `.`)},
					"behavior": "Isolated", "invert": m.rnd.IntN(2) == 0}))
		}
		j["pre_tokenizer"] = map[string]any{"type": "Sequence", "pretokenizers": steps}
	case 7: // ranks
		ending = ".tiktoken"
		var b strings.Builder
		for i := range 256 {
			fmt.Fprintf(&b, "%s %d\n", base64.StdEncoding.EncodeToString([]byte{byte(i)}), i)
		}
		for i := range n {
			fmt.Fprintf(&b, "%s %d\n", base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "w%x", i)), 256+i)
		}
		raw = b.String()
	case 8: // a SentencePiece model with long pieces
		ending = ".model"
		var b []byte
		piece := strings.Repeat("a", pick(m, 1, 100, 100000))
		for i := range min(n, (32<<20)/len(piece)) {
			text := fmt.Sprintf("%s%x", piece, i)
			if i == 0 {
				text = "<unk>"
			}
			p := binary.AppendUvarint([]byte{0x0a}, uint64(len(text)))
			p = append(append(p, text...), 0x15, 0, 0, 0x80, 0xbf)
			if i == 0 {
				p = append(p, 0x18, 2)
			}
			b = append(binary.AppendUvarint(append(b, 0x0a), uint64(len(p))), p...)
		}
		raw = string(b)
	}
	if m.rnd.IntN(3) == 0 {
		j["truncation"] = map[string]any{"direction": "Right", "max_length": pick(m, 0, 1, math.MaxInt32),
			"strategy": "LongestFirst", "stride": 0}
	}
	if raw == "" {
		data, err := json.Marshal(j)
		if err != nil {
			m.t.Fatal(err)
		}
		raw = string(data)
	}
	args := []string{"build", m.file(".txt", "a b aa bb w1 ▁w2\n", times{m.word(), pick(m, 4000, 400000)}, "\n"),
		"--format", "text", "--tokenizer", m.file(ending, raw)}
	if ending == ".tiktoken" {
		args = append(args, "--tokenizer-pattern", "gpt2")
	}
	return hostileCase{cap: m.caps(), args: args}
}

// tree draws folders that are deep, hold links, pipes and bombs, or names of every kind.
func (m *hostileMaker) tree() hostileCase {
	root := filepath.Join(m.dir, "tree")
	must := func(err error) {
		m.t.Helper()
		if err != nil {
			m.t.Fatal(err)
		}
	}
	must(os.Mkdir(root, 0o755))
	must(os.WriteFile(filepath.Join(root, "a.txt"), []byte("hello world\n"), 0o644))
	args := []string{"build", root}
	switch m.rnd.IntN(4) {
	case 0: // deep: the whole path is longer than a path may be
		m.deep(root, pick(m, 10, 1000, 10000), strings.Repeat("d", pick(m, 1, 200)))
	case 1:
		for i := range pick(m, 10, 5000) {
			must(os.Symlink(pick(m, ".", "..", "/dev/zero", "nowhere", root),
				filepath.Join(root, fmt.Sprintf("l%d.txt", i))))
		}
	case 2:
		must(syscall.Mkfifo(filepath.Join(root, "pipe.txt"), 0o644))
	case 3:
		compressed := map[string][]byte{} // by text: compressing is slow under the race detector
		for i := range pick(m, 1, 20) {
			text := pick(m, "a", `{"text":"`, "a b\n")
			if compressed[text] == nil {
				var b bytes.Buffer
				w := gzip.NewWriter(&b)
				n := effort.Of(1<<20, 1<<20, 4<<20) // together above any cap
				if text == "a b\n" {
					n /= 4 // each is a record
				}
				writeParts(m.t, w, times{text, n})
				must(w.Close())
				compressed[text] = b.Bytes()
			}
			name := fmt.Sprintf("%d%s", i, pick(m, ".txt.gz", ".jsonl.gz", ".csv.gz"))
			must(os.WriteFile(filepath.Join(root, name), compressed[text], 0o644))
		}
		args = append(args, "--on-bad-record", "skip")
	}
	return hostileCase{cap: m.caps(), args: args}
}

// deep makes nested folders. A path cannot name the deepest, so it opens them one by one.
func (m *hostileMaker) deep(root string, levels int, name string) {
	fd, err := syscall.Open(root, syscall.O_DIRECTORY, 0)
	for range levels {
		if err == nil {
			err = syscall.Mkdirat(fd, name, 0o755)
		}
		if err == nil {
			var next int
			next, err = syscall.Openat(fd, name, syscall.O_DIRECTORY, 0)
			syscall.Close(fd)
			fd = next
		}
	}
	if err != nil {
		m.t.Fatal(err)
	}
	file, err := syscall.Openat(fd, "b.txt", syscall.O_CREAT|syscall.O_WRONLY, 0o644)
	if err == nil {
		_, err = syscall.Write(file, []byte("deep\n"))
		syscall.Close(file)
	}
	syscall.Close(fd)
	if err != nil {
		m.t.Fatal(err)
	}
}

// tcp draws clients of a listener on loopback, with TLS or without, that read slowly, pipeline, or
// come and go.
func (m *hostileMaker) tcp(datasets ...string) hostileCase {
	dataset := pick(m, datasets...)
	port := freePort(m.t)
	args := []string{"serve", dataset, "--drain", "1s", "--listen", port}
	secure := m.rnd.IntN(2) == 0
	if secure {
		cert, key := selfSigned(m.t)
		token := filepath.Join(m.dir, "token")
		if err := os.WriteFile(token, []byte("secret\n"), 0o600); err != nil {
			m.t.Fatal(err)
		}
		args = append(args, "--tls-cert", cert, "--tls-key", key, "--token-file", token)
	}
	n := pick(m, 10, 300, 1000)
	path := pick(m, "/healthz", "/metrics", "/", "/v1/dataset", "/v1/batches?epochs=0&batch_size=64",
		"/v1/batches?epochs=0&batch_size=4096&bucket=100000&shuffle=full",
		"/v1/batches?start="+strings.Repeat("9", 8000), "/"+strings.Repeat("%41", 3000),
		"/v1/batches?epochs=0&max_tokens=100000000&padding=max_length")
	request := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer secret\r\n\r\n",
		pick(m, "GET", "GET", "HEAD", "POST"), path)
	pipelined, churn, slow := pick(m, 1, 50, 1000), m.rnd.IntN(4) == 0, m.rnd.IntN(2) == 0
	return hostileCase{cap: pick[int64](m, 32, 48, 64), args: args, crowd: func(t *testing.T, _ string) {
		var open []net.Conn
		end := time.Now().Add(10 * time.Second)
		for range n {
			c, err := net.DialTimeout("tcp", port, time.Second)
			if err != nil || time.Now().After(end) {
				break
			}
			_ = c.(*net.TCPConn).SetReadBuffer(4096)
			_ = c.SetDeadline(time.Now().Add(300 * time.Millisecond))
			if secure && m.rnd.IntN(8) > 0 { // the others do not speak TLS
				c = tls.Client(c, &tls.Config{InsecureSkipVerify: true})
			}
			_, _ = io.WriteString(c, strings.Repeat(request, pipelined))
			if slow {
				_, _ = io.ReadFull(c, make([]byte, 100))
			}
			if churn {
				c.Close()
			} else {
				open = append(open, c)
			}
		}
		for _, c := range open {
			c.Close()
		}
	}}
}

// freePort returns a loopback port that was free a moment ago.
func freePort(t *testing.T) string {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// selfSigned writes a certificate for loopback, and its key.
func selfSigned(t *testing.T) (cert, key string) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), crand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(crand.Reader, of, of, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der},
		key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}
