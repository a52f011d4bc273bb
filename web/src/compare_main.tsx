/* Entry point of the page that compares two traces. */
import { render } from "preact";
import "./app.css";
import "./compare.css";
import { keepColors } from "./colors";
import { Compare, keepComparison } from "./compare";

keepColors();
keepComparison();
render(<Compare />, document.body);
