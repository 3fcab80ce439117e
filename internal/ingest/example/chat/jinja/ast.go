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
		line            int
		name            string
		params          []string
		defaults        []node // of the last of params
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
		line int
		body []node
	}
	scopeNode    struct{ body []node }
	breakNode    struct{}
	continueNode struct{}
)

// Expressions.
type (
	constExpr struct{ value any }
	nameExpr  struct{ name string }
	// attributeExpr is a.name, and itemExpr a[key].
	attributeExpr struct {
		line int
		of   node
		name string
	}
	itemExpr struct {
		line    int
		of, key node
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
		arguments argumentList
	}
	testExpr struct {
		line      int
		of        node
		name      string
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
	}
)

type argumentList struct {
	positional []node
	names      []string
	named      []node
	list, dict node // *args and **kwargs
}
