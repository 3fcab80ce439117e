package feed

import (
	"errors"
	"net/http"
	"time"

	"github.com/dsload/dsload/internal/page"
)

// ErrInUse means that a live server uses the socket.
var ErrInUse = errors.New("another server is listening there")

// RequestError is an error that is sent to the client: a status, what is wrong, and what to do.
type RequestError struct {
	Status int // HTTP status, 4xx or 5xx
	Reason string
	Hint   string
}

func (e *RequestError) Error() string { return e.Reason }

// ParamError is a RequestError about a parameter of /v1/batches.
type ParamError struct {
	Status       int
	Param        string
	Reason, Hint string
}

func (e *ParamError) Error() string { return e.Param + ": " + e.Reason }
func (e *ParamError) Unwrap() error { return &RequestError{e.Status, e.Error(), e.Hint} }

// BadParam returns the error for an invalid parameter of /v1/batches.
func BadParam(param, reason, hint string) error {
	return &ParamError{http.StatusBadRequest, param, reason, hint}
}

// writeError answers with {"error", "hint"}. Errors other than RequestError are internal: status
// 500.
func writeError(w http.ResponseWriter, err error) {
	re, ok := errors.AsType[*RequestError](err)
	if !ok {
		re = &RequestError{http.StatusInternalServerError, err.Error(),
			"see the server's log; `dsload verify` checks the dataset"}
	}
	if re.Status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "2")
	}
	// making the first batch may have taken longer
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerTimeout))
	page.Refuse(w, re.Status, re.Reason, re.Hint)
}
