import js from "@eslint/js";
import globals from "globals";

const rules = {
  ...js.configs.recommended.rules,
  eqeqeq: "error",
  "no-eval": "error",
  "no-implied-eval": "error",
  "no-restricted-properties": [
    "error",
    ...["innerHTML", "outerHTML", "insertAdjacentHTML", "write"].map((property) => ({
      property,
      message: "Text from a file must stay text: use textContent, or element() of elements.js.",
    })),
  ],
  "no-restricted-globals": ["error", "fetch", "XMLHttpRequest", "localStorage", "eval"],
  "no-shadow": "error",
  "no-var": "error",
  "prefer-const": "error",
};

export default [
  { files: ["src/condense_once/**/*.js"], languageOptions: { ecmaVersion: 2023, globals: globals.browser }, rules },
  { files: ["tests/explorer/js/*.js"], languageOptions: { ecmaVersion: 2023, globals: globals.node }, rules },
];
