function main() {
  console.log('main ran with', process.argv.length);
}
if (require.main === module) main();
