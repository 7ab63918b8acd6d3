// actctl: one small tool to talk to a running actd.
int main(void)
{
    return 0;
}
