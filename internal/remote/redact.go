package remote

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/lazy"
)

// What Redact does with a parameter of an address depends on its name:
//
//	harmless   kept, if its value looks like what the name promises
//	secret     removed: it grants access, and the file is the same without it
//	signing    removed together with a secret one, with which it changes
//	any other  hidden: it may grant access, and it may say which file is meant

// harmlessParameters are parameters whose values are not secrets.
var harmlessParameters = words(`download dl raw plain inline format alt export revision rev ref branch tag version
	versionid generation snapshot split config subset lang language locale page page_size per_page part shard offset
	limit start length rows seed year month day file filename`)

// harmlessValue matches what the value of a harmless parameter may be once it is decoded.
var harmlessValue = lazy.Regexp(`^[A-Za-z0-9._,/ +-]{0,64}$`)

// secretParameters are parameters that grant access.
var secretParameters = words(`signature sign sig awsaccesskeyid googleaccessid key auth authorization bearer jwt pwd
	pass hmac sas otp ticket tempauth hdnea hdnts hdntl q-ak`)

// secretWords are parts of the names of other parameters that grant access.
var secretWords = []string{"token", "secret", "passw", "credential", "signature", "x-amz-", "x-goog-", "x-ms-",
	"x-oss-", "q-sign-", "access_key", "accesskey", "apikey", "api_key", "api-key", "auth_key", "auth-key", "authkey"}

// signingParameters accompany a signature and change with it: those of the stores of Amazon, Google,
// Azure, Alibaba and Tencent, and of several networks that deliver files.
var signingParameters = words(`expires expiry expiration exp e policy key-pair-id timestamp ts nonce se sp sv sr st spr
	skoid sktid skt ske sks skv sip sdd ss srt q-key-time q-header-list q-url-param-list`)

// linkHashes are the parameters of nginx's secure links. Without an expiry they may be the checksum
// that names a file.
var linkHashes = words("md5 hash")

func words(text string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(text) {
		set[w] = true
	}
	return set
}

// hiddenParameter stands for the parameters that are hidden. Its value is a digest of them and of
// what precedes them in the address, so that addresses of different files stay different.
const hiddenParameter = "hidden"

var hiddenValue = lazy.Regexp(`^~[0-9a-f]{12}$`)

// Redact returns an address as it may be shown and kept: without name, password and fragment, and
// with no value of a parameter that is not known to be harmless. The result identifies the file,
// however often its address is signed anew. Redacting it again changes nothing.
func Redact(address string) string {
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		return address
	}
	rest, query, hasQuery := splitAddress(strings.ToLower(scheme), rest)
	host, path, hasPath := strings.Cut(rest, "/")
	if i := strings.LastIndexByte(host, '@'); i >= 0 {
		host = host[i+1:]
	}
	out := scheme + "://" + host
	if hasPath {
		out += "/" + path
	}
	if !hasQuery {
		return out
	}
	kept, hidden := sortQuery(query)
	if len(hidden) > 0 {
		slices.Sort(hidden)
		sum := sha256.Sum256([]byte(strings.Join(append([]string{out}, hidden...), "\x00")))
		kept = append(kept, hiddenParameter+"=~"+hex.EncodeToString(sum[:6]))
	}
	if len(kept) == 0 {
		return out
	}
	return out + "?" + strings.Join(kept, "&")
}

// splitAddress splits what follows :// into what it names and its query. A key in a bucket and a
// pattern may hold # and ?; what follows is taken for a query only if it has a parameter.
func splitAddress(scheme, rest string) (name, query string, hasQuery bool) {
	if drivers[scheme].lists {
		name, query, hasQuery = strings.Cut(rest, "?")
		if !strings.Contains(query, "=") {
			return rest, "", false
		}
		return name, query, hasQuery
	}
	if _, err := url.Parse(scheme + "://" + rest); err != nil {
		// the characters that break it may be those of a password
		rest = rest[strings.LastIndexByte(rest, '@')+1:]
	}
	rest, _, _ = strings.Cut(rest, "#")
	return strings.Cut(rest, "?")
}

// sortQuery returns the parameters of a query that are kept and those that are hidden, as they
// stand.
func sortQuery(query string) (kept, hidden []string) {
	type pair struct{ name, text string }
	var others []pair
	signed, expires := false, false
	for _, text := range strings.FieldsFunc(query, func(r rune) bool { return r == '&' || r == ';' }) {
		name, value, hasValue := strings.Cut(text, "=")
		name, nameErr := url.QueryUnescape(name)
		value, valueErr := url.QueryUnescape(value)
		name = strings.ToLower(name)
		switch {
		case nameErr != nil || valueErr != nil:
			others = append(others, pair{"", text})
		case secretParameters[name],
			slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(name, word) }):
			signed = true
		case harmlessParameters[name] && harmlessValue().MatchString(value),
			name == hiddenParameter && hasValue && hiddenValue().MatchString(value):
			kept = append(kept, text)
		default:
			expires = expires || signingParameters[name]
			others = append(others, pair{name, text})
		}
	}
	signed = signed || expires && slices.ContainsFunc(others, func(p pair) bool { return linkHashes[p.name] })
	for _, p := range others {
		if !signed || !signingParameters[p.name] && !(expires && linkHashes[p.name]) {
			hidden = append(hidden, p.text)
		}
	}
	return kept, hidden
}
