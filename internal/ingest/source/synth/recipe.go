package synth

// RecipeColumns are those of RecipeNLG; the first has no name.
var RecipeColumns = []string{"", "title", "ingredients", "directions", "link", "source", "NER"}

var (
	recipeIngredients = [64]uint8{3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 6, 7, 7, 7, 7, 7, 7,
		7, 8, 8, 8, 8,
		// median 8, sigma 0.45
		8, 8, 8, 9, 9, 9, 9, 9, 9, 9, 10, 10, 10, 10, 10, 11, 11, 11, 11, 12, 12, 12, 13, 13, 14, 14, 15, 16, 16,
		18, 20, 24}
	recipeSteps = [64]uint8{1, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 5,
		5, 5, 5,
		// median 5, sigma 0.6
		5, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 7, 7, 7, 7, 8, 8, 8, 8, 9, 9, 9, 10, 10, 11, 11, 12, 13, 14, 16, 16}
)

var (
	amounts  = []string{"1", "2", "3", "4", "1/2", "1/3", "1/4", "3/4", "1 1/2", "2 1/2", "6", "8", "12"}
	measures = []string{"c.", "c.", "tsp.", "tsp.", "Tbsp.", "oz.", "lb.", "pkg.", "can", "cloves", "slices",
		"stick", "qt.", "small", "large", "medium"}
	states = []string{"", "", "", ", chopped", ", melted", ", softened", ", diced", ", drained", ", grated",
		", beaten", " (optional)", ", cut up", ", sliced"}
	foods = []string{"sugar", "brown sugar", "flour", "butter", "margarine", "milk", "eggs", "salt", "pepper",
		"vanilla", "baking powder", "baking soda", "onion",
		"garlic", "celery", "carrots", "potatoes", "tomatoes", "cream cheese", "sour cream", "Cheddar cheese",
		"chicken breasts", "ground beef", "bacon", "ham",
		"shrimp", "rice", "noodles", "bread crumbs", "mushrooms", "green pepper", "broccoli", "spinach", "corn",
		"green beans", "kidney beans", "olive oil",
		"vegetable oil", "vinegar", "lemon juice", "orange juice", "soy sauce", "ketchup", "mustard", "mayonnaise",
		"honey", "cinnamon", "nutmeg", "ginger",
		"parsley", "basil", "oregano", "paprika", "chili powder", "walnuts", "pecans", "almonds", "coconut",
		"raisins", "apples", "bananas", "strawberries",
		"blueberries", "pineapple", "cherries", "chocolate chips", "cocoa", "marshmallows", "gelatin",
		"whipped cream", "water", "beef broth", "cream of mushroom soup",
		"evaporated milk", "condensed milk", "shortening", "yeast", "cornstarch", "oats", "cabbage", "zucchini",
		"peas", "crème fraîche", "jalapeños"}
	dishes = []string{"Casserole", "Salad", "Cake", "Pie", "Soup", "Bread", "Cookies", "Chicken", "Dip", "Stew",
		"Pudding", "Muffins", "Chili", "Roast", "Sauce", "Bars"}
	verbs = []string{"Mix", "Combine", "Add", "Stir in", "Pour", "Cream", "Beat", "Blend", "Melt", "Sprinkle",
		"Spread", "Fold in", "Chop", "Boil", "Brown", "Cook"}
	places = []string{"in a large bowl", "in a saucepan", "over the top", "until smooth", "until tender",
		"in a greased 9 x 13-inch pan", "well", "with a fork", "together"}
	ends = []string{`Bake at 350\u00b0 for `, "Cook over medium heat for ", `Bake, uncovered, at 325\u00b0 for `,
		"Chill for ", "Simmer for ", "Let stand for "}
)

// recipe writes a recipe as RecipeNLG has them: a CSV record whose lists are JSON, without its line
// end.
func (w *textWriter) recipe(ordinal int64) {
	w.number(uint64(ordinal))
	w.str(",")
	at := len(w.dst)
	for range 1 + w.rng.below(2) {
		w.name()
	}
	w.dst = append(w.dst[:at], w.dst[at+1:]...) // the space before the first word
	w.str(" ")
	w.str(dishes[w.rng.below(len(dishes))])
	w.str(`,"[`)
	var used [24]int
	n := w.rng.of(&recipeIngredients)
	for i := range n {
		used[i] = w.rng.below(len(foods))
		w.separate(i)
		w.str(amounts[w.rng.below(len(amounts))])
		w.str(" ")
		w.str(measures[w.rng.below(len(measures))])
		w.str(" ")
		w.str(foods[used[i]])
		w.str(states[w.rng.below(len(states))])
		w.str(`""`)
	}
	w.str(`]","[`)
	for i := range w.rng.of(&recipeSteps) {
		w.separate(i)
		w.step(used[:n])
		w.str(`""`)
	}
	w.str(`]",www.example.com/recipe/`)
	w.number(w.rng.next() >> 40)
	w.str(`,Generated,"[`)
	for i, food := range used[:n] {
		w.separate(i)
		w.str(foods[food])
		w.str(`""`)
	}
	w.str(`]"`)
}

func (w *textWriter) separate(i int) {
	if i > 0 {
		w.str(", ")
	}
	w.str(`""`)
}

// step writes a sentence of directions.
func (w *textWriter) step(used []int) {
	if w.rng.below(4) == 0 {
		w.str(ends[w.rng.below(len(ends))])
		w.number(uint64(5 * (1 + w.rng.below(16))))
		w.str(" minutes.")
		return
	}
	w.str(verbs[w.rng.below(len(verbs))])
	for i := range 1 + w.rng.below(3) {
		if i > 0 {
			w.str(" and")
		}
		w.str(" ")
		w.str(foods[used[w.rng.below(len(used))]])
	}
	w.str(" ")
	w.str(places[w.rng.below(len(places))])
	for range w.rng.below(8) {
		slot := w.tables.word(uint32(w.rng.next() >> 32))
		w.dst = append(w.dst, slot[:slot[slotBytes-1]]...)
	}
	w.str(".")
}
