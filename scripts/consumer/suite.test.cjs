const { testLockConformance } = require('@locks/core/conformance/node-test');
const { harness } = require('./harness.mjs');

testLockConformance(harness);
