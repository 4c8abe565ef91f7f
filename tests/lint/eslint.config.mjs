// What tests/test_lint.py asks of the scripts in static/ and of what tests run in a page. They are modules, but for
// those that pages load by a plain script tag.
import js from '@eslint/js'
import globals from 'globals'

export default [
  js.configs.recommended,
  {
    languageOptions: {globals: globals.browser},
    linterOptions: {reportUnusedDisableDirectives: 'error'},
    rules: {
      eqeqeq: 'error',
      'no-shadow': 'error',
      'no-throw-literal': 'error',
      'no-var': 'error',
      'prefer-const': ['error', {destructuring: 'all'}],
    },
  },
  {files: ['static/embed.js'], languageOptions: {globals: {
    TEXTS: 'readonly', WIDGET_STYLE: 'readonly', ASSETS_VERSION: 'readonly',
  }}},
  {files: ['static/reactions.js'], languageOptions: {globals: {REACTIONS: 'readonly'}}},
  {files: ['static/*.js'], languageOptions: {globals: {MODULE_STYLE: 'readonly'}}},
  // What `commentd export` puts together for Node: list.cjs and one of the others.
  {
    files: ['static/partials/*.cjs'],
    languageOptions: {sourceType: 'commonjs', globals: {
      ...globals.node, hexo: 'readonly', path: 'readonly', withComments: 'readonly',
    }},
    rules: {'no-redeclare': 'off', 'no-unused-vars': 'off'},
  },
  {files: ['static/**/*.{js,cjs}'], rules: {'max-len': ['error', {code: 100}]}},
  // Its texts stand in a table.
  {files: ['static/home.js'], rules: {'max-len': ['error', {code: 100, ignoreStrings: true}]}},
  {files: ['static/{embed,home,loader,old,reactions}.js', 'tests/support/watch.js'], languageOptions: {sourceType: 'script'}},
]
