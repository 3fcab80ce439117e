package jinja

// node is a statement or an expression of a parsed template.
type node interface{}

// Statements.
type (
	textNode  struct{ text string }
	printNode struct {
		line  int
		value node
	}
	ifNode struct {
		line     int
		tests    []node
		bodies   [][]node // one more than tests if there is an else
		hasFinal bool
	}
	forNode struct {
		line       int
		target     node
		over, test node
		body, none []node
		plain      *plainLoop // nil if it has no such form
		recursive  bool
	}
	setNode struct {
		line          int
		target, value node
	}
	setBlockNode struct {
		line   int
		target node
		filter node // applied to captured text, or nil
		body   []node
	}
	withNode struct {
		targets, values []node
		body            []node
	}
	macroNode struct {
		name            string
		id              int // the name's id
		params          []string
		ids             []int  // those of params
		defaults        []node // those of the last params
		body            []node
		varargs, kwargs bool // whether the body uses them
		caller          bool
	}
	callNode struct {
		line  int
		call  *callExpr
		macro *macroNode // the body, as "caller"
	}
	filterNode struct {
		line   int
		filter node
		body   []node
	}
	generationNode struct {
		body []node
	}
	blockNode struct {
		name string
		body []node
	}
	breakNode    struct{}
	continueNode struct{}
)

// Expressions.
type (
	constExpr struct{ value any }
	// nameExpr is a variable, else a global function if there is one.
	nameExpr struct {
		name   string
		id     int
		global any
		none   *undefined // the value of the variable where there is none
		asked  bool       // what is asked is whether it is defined
		mayLack
	}
	// attributeExpr is a.name, and itemExpr a[key].
	attributeExpr struct {
		line int
		of   node
		name string
		text stringMethod // the method of that name, nil if there is none
		dict dictMethod
		// field is set if a dict has no method of that name, so that it is a key.
		field bool
		mayLack
	}
	itemExpr struct {
		line    int
		of, key node
		mayLack
	}
	sliceExpr struct{ start, stop, step node }
	callExpr  struct {
		line      int
		function  node
		arguments argumentList
	}
	filterExpr struct {
		line      int
		of        node // nil: what a block captured
		name      string
		run       filter // nil for an unknown name
		arguments argumentList
		fixed     bool // its arguments are constants
	}
	testExpr struct {
		line      int
		of        node
		name      string
		predicate func(any) bool // nil for a test with arguments
		arguments argumentList
	}
	unaryExpr struct {
		line     int
		operator string
		of       node
	}
	binaryExpr struct {
		line        int
		operator    string
		left, right node
	}
	compareExpr struct {
		line      int
		first     node
		operators []string
		rest      []node
		empty     bool // it asks whether the length of a variable is 0
	}
	condExpr struct {
		test, yes, no node // no may be nil
	}
	concatExpr struct{ parts []node }
	listExpr   struct{ items []node }
	tupleExpr  struct{ items []node }
	dictExpr   struct{ keys, values []node }
	// namespaceRef is ns.name as the target of a set statement.
	namespaceRef struct {
		line       int
		name, attr string
		id         int // the name's id
	}
)

// mayLack is set for what is asked for in a way that allows for nothing being there: value|default(…), or value is
// defined.
type mayLack struct{ lacks bool }

func (m *mayLack) allow() { m.lacks = true }

type argumentList struct {
	positional []node
	names      []any // strings
	named      []node
	list, dict node // *args and **kwargs
}
