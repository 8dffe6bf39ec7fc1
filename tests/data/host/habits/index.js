const fs = require('fs');
const path = require('node:path');
const helper = require('./helper');

export async function execute() {
  const names = fs.readdirSync(__dirname).sort().join(',');
  return { content: [{ type: 'text', text: `${names} ${path.basename(__filename)} ${helper.double(21)}` }] };
}
