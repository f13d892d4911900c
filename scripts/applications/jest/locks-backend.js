const { fileBackend } = require('@locks/file');
const { tmpdir } = require('node:os');
const { join } = require('node:path');

module.exports = () => fileBackend(join(tmpdir(), `locks-jest-${process.pid}`));
