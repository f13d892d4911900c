// What an application carries of a package: the main entry bundled, minified and gzipped. Why there are budgets: docs/adr/0006-size-budgets.md.
// `ignore`: modules that the user has anyway.
const budgets = [
  // What looks for circles over processes is loaded by the first long wait, and has a budget of its own.
  { name: 'core', limit: '24.8 kB', ignore: ['./long-waits.js'] },
  {
    name: 'core, of long waits',
    file: 'core/dist/long-waits.js',
    limit: '4.3 kB',
    ignore: [
      './context.js',
      './errors.js',
      './holder-query.js',
      './manager-core.js',
      './modes.js',
      './names.js',
      './renewal-status.js',
    ],
  },
  // What who imports it carries beside core.
  {
    name: 'core, of the lint',
    file: 'core/dist/lint/index.js',
    limit: '2.5 kB',
    ignore: [
      '../context.js',
      '../errors.js',
      '../lease-handle.js',
      '../read-options.js',
      '../renewal-status.js',
      '../timer.js',
    ],
  },
  { name: 'file', limit: '23.6 kB', ignore: ['@locks/core'] },
  { name: 'redis-glide', limit: '24.4 kB', ignore: ['@locks/core', '@valkey/valkey-glide'] },
  { name: 'redis-ioredis', limit: '24.3 kB', ignore: ['@locks/core', 'ioredis'] },
  { name: 'upstash', limit: '23.1 kB', ignore: ['@locks/core'] },
  { name: 'redis-node', limit: '24.25 kB', ignore: ['@locks/core', 'redis', '@redis/*'] },
  { name: 'dynamodb', limit: '20.1 kB', ignore: ['@locks/core', '@aws-sdk/*'] },
  { name: 's3', limit: '20.3 kB', ignore: ['@locks/core', '@aws-sdk/*'] },
  { name: 'mongodb', limit: '19.6 kB', ignore: ['@locks/core', 'mongodb'] },
  { name: 'nats', limit: '21.3 kB', ignore: ['@locks/core', '@nats-io/*'] },
  { name: 'redisson', limit: '6.3 kB', ignore: ['@locks/core'] },
];

export default budgets.map(({ file, ...budget }) => ({
  ...budget,
  path: `packages/${file ?? `${budget.name}/dist/index.js`}`,
  import: '*',
  gzip: true,
  modifyEsbuildConfig: (config) => ({ ...config, platform: 'node', target: 'node20' }),
}));
