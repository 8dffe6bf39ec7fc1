export class MyTool {
  async run(): Promise<string> {
    return 'never';
  }
}
