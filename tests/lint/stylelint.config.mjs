// What tests/test_lint.py asks of the styles in static/.
export default {
  extends: 'stylelint-config-recommended',
  rules: {
    // Chromium aligns cells of formulas by values of its own.
    'declaration-property-value-no-unknown': [
      true, {ignoreProperties: {'text-align': ['/^-webkit-/']}},
    ],
    // It compares selectors that never match the same element. The files follow the page, from top to bottom.
    'no-descending-specificity': null,
  },
}
