/* Entry point of the page that compares two traces. */
import { render } from "preact";
import "./app.css";
import "./compare.css";
import { keepKnown } from "./address";
import { keepColors } from "./colors";
import { Compare, keepComparison, parameters } from "./compare";

keepColors();
keepKnown(parameters);
keepComparison();
render(<Compare />, document.body);
