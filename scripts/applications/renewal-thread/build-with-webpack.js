// `build-with-webpack.js external|bundled` builds the application into webpack-external/ or webpack-bundled/.
import process from 'node:process';
import { promisify } from 'node:util';
import webpack from 'webpack';

const [, , how] = process.argv;
const context = import.meta.dirname;
const stats = await promisify(webpack)({
  context,
  entry: './app.js',
  mode: 'production',
  target: 'node',
  experiments: { outputModule: true },
  externalsType: 'module',
  externals: how === 'external' ? [/^@locks\//] : [],
  // What webpack writes in its place is the folder of the source, which another machine does not have.
  module: { parser: { javascript: { importMeta: false } } },
  output: { path: `${context}/webpack-${how}`, filename: 'main.js', module: true, chunkFormat: 'module' },
});
if (stats.hasErrors()) throw new Error(stats.toString());
