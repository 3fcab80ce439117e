package remote

import (
	"cmp"
	"net/url"
	"os"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
)

// An azureAccount is a storage account of Azure and what grants access to it: its key, a shared
// access signature, or nothing.
type azureAccount struct {
	base      *url.URL                  // the blob service's
	key       *blob.SharedKeyCredential // nil for none
	signature string                    // a query, "" for none
}

const azureSetCredentials = "set AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN or AZURE_STORAGE_CONNECTION_STRING" +
	" (managed identities and logins are not read)"

// deniedHint returns what to do if access is denied.
func (a *azureAccount) deniedHint() string {
	switch {
	case a.key != nil:
		return "check the account's name, its key, and the networks that it lets in"
	case a.signature != "":
		return "check the shared access signature: when it ends, and that it permits reading and listing, and to write also " +
			"creating, writing and deleting"
	}
	return "no credentials were found: " + azureSetCredentials
}

// firstEnv returns the first of the variables that is set, "" for none.
func firstEnv(names ...string) string {
	for _, name := range names {
		if value := strings.TrimSpace(os.Getenv(name)); value != "" {
			return value
		}
	}
	return ""
}

// azureSettings are the parts of an account as text.
type azureSettings struct{ endpoint, account, key, signature string }

// azureFromEnv reads the variables that Azure's command line and adlfs read. A connection string
// comes before the others, except that AZURE_STORAGE_BLOB_ENDPOINT says where the service is.
func azureFromEnv() (azureAccount, error) {
	s := azureSettings{
		account:   firstEnv("AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_ACCOUNT_NAME"),
		key:       firstEnv("AZURE_STORAGE_KEY", "AZURE_STORAGE_ACCOUNT_KEY"),
		signature: firstEnv("AZURE_STORAGE_SAS_TOKEN"),
	}
	from := "AZURE_STORAGE_KEY"
	if text := firstEnv("AZURE_STORAGE_CONNECTION_STRING"); text != "" {
		var err error
		if s, err = parseConnectionString(text); err != nil {
			return azureAccount{}, err
		}
		from = "AccountKey of AZURE_STORAGE_CONNECTION_STRING"
	}
	s.endpoint = cmp.Or(firstEnv("AZURE_STORAGE_BLOB_ENDPOINT", "AZURE_STORAGE_SERVICE_ENDPOINT"), s.endpoint)
	if s.endpoint == "" {
		if s.account == "" {
			return azureAccount{}, &Error{Kind: ErrUsage, Text: "no storage account is named",
				Hint: "set AZURE_STORAGE_CONNECTION_STRING, or AZURE_STORAGE_ACCOUNT with AZURE_STORAGE_KEY or " +
					"AZURE_STORAGE_SAS_TOKEN"}
		}
		s.endpoint = azureEndpoint("https", s.account, "core.windows.net")
	}
	u, err := url.Parse(s.endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" ||
		u.Fragment != "" {
		return azureAccount{}, &Error{Kind: ErrUsage,
			Text: "the endpoint of the storage account is not the address of a server",
			Hint: "check AZURE_STORAGE_ACCOUNT, AZURE_STORAGE_BLOB_ENDPOINT or BlobEndpoint: " +
				"https://ACCOUNT.blob.core.windows.net"}
	}
	a := azureAccount{base: u}
	if s.key == "" {
		a.signature = strings.TrimPrefix(s.signature, "?")
		return a, nil
	}
	if s.account == "" {
		return azureAccount{}, &Error{Kind: ErrUsage, Text: "a key is set, but not the storage account that it is of",
			Hint: "set AZURE_STORAGE_ACCOUNT"}
	}
	if a.key, err = blob.NewSharedKeyCredential(s.account, s.key); err != nil {
		return azureAccount{}, &Error{Kind: ErrUsage, Text: "the storage account's key is not in base64",
			Hint: "check " + from}
	}
	return a, nil
}

// azureEndpoint returns where the blobs of an account are.
func azureEndpoint(protocol, account, suffix string) string {
	return (&url.URL{Scheme: protocol, Host: account + ".blob." + suffix}).String()
}

// parseConnectionString reads NAME=VALUE;NAME=VALUE. Its errors quote nothing.
func parseConnectionString(text string) (azureSettings, error) {
	values := map[string]string{}
	for part := range strings.SplitSeq(text, ";") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		name, value, ok := strings.Cut(part, "=")
		if !ok {
			return azureSettings{}, &Error{Kind: ErrUsage, Text: "AZURE_STORAGE_CONNECTION_STRING cannot be parsed",
				Hint: "copy it as it stands under the account's access keys: NAME=VALUE;NAME=VALUE"}
		}
		values[strings.ToLower(strings.TrimSpace(name))] = strings.TrimSpace(value)
	}
	s := azureSettings{endpoint: values["blobendpoint"], account: values["accountname"], key: values["accountkey"],
		signature: values["sharedaccesssignature"]}
	switch {
	case s.endpoint != "":
	case s.account == "":
		return s, &Error{Kind: ErrUsage, Text: "AZURE_STORAGE_CONNECTION_STRING names no storage account",
			Hint: "it needs AccountName or BlobEndpoint, of an emulator as well"}
	default:
		s.endpoint = azureEndpoint(cmp.Or(values["defaultendpointsprotocol"], "https"), s.account,
			cmp.Or(values["endpointsuffix"], "core.windows.net"))
	}
	return s, nil
}
